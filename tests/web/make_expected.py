#!/usr/bin/env python3
"""Writes data/*.json: what the saved pages in ../shared/data/web hold, read by BeautifulSoup and lxml.

    python3 -m venv venv && venv/bin/pip install beautifulsoup4 lxml html5lib
    venv/bin/python tests/web/make_expected.py ../shared/data/web

Nothing here shares code or parser with spool: the tests compare the two exactly.
"""
import base64
import hashlib
import json
import pathlib
import re
import sys
import urllib.parse

from bs4 import BeautifulSoup, Comment

SOURCE = pathlib.Path(sys.argv[1])
DATA = pathlib.Path(__file__).resolve().parent / "data"


def line(element):
    return re.sub(r"[ \t\n\r\f\v\u00a0]+", " ", element.get_text() if element else "").strip(" ")


def query(url):
    return urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)


def duckduckgo(soup):
    for result in soup.select("div.result.web-result, div.result.results_links"):
        if "result--ad" in result["class"]:
            continue
        link = result.select_one("a.result__a")
        url = urllib.parse.urljoin("https://html.duckduckgo.com/", link["href"])
        if urllib.parse.urlsplit(url).path == "/l/":
            url = query(url)["uddg"][0]
        date = re.search(r"\d{4}-\d\d-\d\dT", line(result.select_one(".result__extras__url")))
        yield {"title": line(link), "url": url, "snippet": line(result.select_one(".result__snippet")),
               "published": date.group()[:10] if date else ""}


def bing(soup):
    for result in soup.select("li.b_algo"):
        link = result.select_one("h2 a")
        packed = query(link["href"])["u"][0]
        assert packed.startswith("a1")
        packed = packed[2:]
        url = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode()
        yield {"title": line(link), "url": url, "snippet": line(result.select_one(".b_caption p")),
               "published": line(result.select_one(".news_dt"))}


def wikipedia(answer):
    for hit in answer["query"]["search"]:
        name = urllib.parse.quote(hit["title"].replace(" ", "_"), safe="!$()*,/:;@-._~")
        yield {"title": hit["title"], "url": "https://en.wikipedia.org/wiki/" + name,
               "snippet": line(BeautifulSoup(hit["snippet"], "lxml")), "published": hit["timestamp"][:10]}


def page_characters(soup):
    """The main part's characters without white space: as a count and a hash."""
    main = soup.select_one("main")
    left_out = ("script, style, nav, noscript, footer, button, select, input, textarea, svg, video, audio, [hidden], "
                "[role=navigation], [aria-hidden=true], sup.reference, .mw-editsection")
    for element in main.select(left_out):
        element.decompose()
    for element in main.select("[style]"):
        if re.search(r"display:none|visibility:hidden", re.sub(r"\s", "", element.get("style") or "")):
            element.decompose()
    for comment in main.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    text = re.sub(r"[\s\u00a0\u00ad\u200b\u200e\u200f\u2060\ufeff]|[\u202a-\u202e\u2066-\u2069]", "", main.get_text())
    return {"title": line(soup.title), "characters": len(text),
            "sha256": hashlib.sha256(text.encode()).hexdigest()}


def write(name, value):
    (DATA / f"{name}.json").write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")
    print(name, len(value))


for page in ("ddg_html_results_a", "ddg_html_results_b", "ddg_html_results_c", "ddg_html_with_ad"):
    write(page, list(duckduckgo(BeautifulSoup((SOURCE / f"{page}.html").read_bytes(), "lxml"))))
write("bing_results", list(bing(BeautifulSoup((SOURCE / "bing_results.html").read_bytes(), "lxml"))))
for page in ("search_default", "search_suggestion"):
    write(page, list(wikipedia(json.loads((SOURCE / "wikipedia" / f"{page}.json").read_text()))))
write("wikipedia_page", page_characters(BeautifulSoup((SOURCE / "wikipedia_page.html").read_bytes(), "html5lib")))
