// Pages as text: structure, what is left out, and pages made to hurt.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/hash.h"
#include "parse.h"
#include "support/expect_error.h"
#include "web/html_text.h"
#include "web/plain_text.h"
#include "web/url.h"

namespace spool::test {

namespace {

std::string repeated(const std::string& text, size_t times) {
    std::string all;
    all.reserve(text.size() * times);
    for (size_t i = 0; i < times; ++i) {
        all += text;
    }
    return all;
}

} // namespace

TEST(HtmlText, KeepsHeadingsParagraphsListsTablesAndPreformattedLines) {
    const HtmlText page = html_to_text(web_fixture("mount_fuji.html"));
    EXPECT_EQ(page.title, "Mount Fuji - The Peaks");
    EXPECT_EQ(page.text, R"(# Mount Fuji

Highest point
Elevation | 3,776.24 m (12,389.2 ft)
Listing | Ultra List of peaks

Mount Fuji is an active stratovolcano on the Japanese island of Honshu, with a summit elevation of 3,776.24 m. It last erupted from 1707 to 1708—over three centuries ago.

## Climbing

Four routes lead up:
the fifth stations are reached by bus.

- Yoshida, with huts
  - open July to September
- Fujinomiya

  depart  07:00
  arrive  13:30)");
}

TEST(HtmlText, ArticlePageHasEveryCharacterOfItsMainPart) {
    const auto path = shared_data("web/wikipedia_page.html");
    if (!path) {
        GTEST_SKIP() << "the saved pages (../shared/data/web) are not here";
    }
    const HtmlText page = html_to_text(read_text(*path));
    const Json expected = expected_list("wikipedia_page");
    EXPECT_EQ(page.title, expected["title"].get<std::string>());
    std::string characters = page.text;
    // Marks of lists, headings and cells are spool's own.
    for (const std::string mark : {"- ", "# ", " | "}) {
        for (size_t at = 0; (at = characters.find(mark, at)) != std::string::npos;) {
            characters.erase(at, mark.size());
        }
    }
    std::erase_if(characters, [](char letter) { return letter == ' ' || letter == '\n' || letter == '#'; });
    EXPECT_EQ(sha256(std::as_bytes(std::span(characters))), expected["sha256"].get<std::string>())
        << page.text;
}

TEST(HtmlText, TablesThatHoldTablesAreLayout) {
    EXPECT_EQ(
        html_to_text("<table><tr><td><p>One.</p><p>Two.</p></td><td><table><tr><td>a</td><td>b</td></tr>"
                     "<tr><td></td><td>c</td></tr></table></td></tr></table>")
            .text,
        "One.\n\nTwo.\n\na | b\nc");
}

TEST(HtmlText, EntitiesAndBrokenMarkupAreRead) {
    EXPECT_EQ(
        html_to_text("<p>3 &lt; 4 &amp;&nbsp;5&#8211;6 &eacute;&#x1F5FB; &unknown; <b>bold<p>next").text,
        "3 < 4 & 5–6 é\xF0\x9F\x97\xBB &unknown; bold\n\nnext");
    EXPECT_EQ(html_to_text("").text, "");
    EXPECT_EQ(html_to_text("only text").text, "only text");
    EXPECT_EQ(html_to_text("<h1>Heading</h1>").title, "Heading");
}

TEST(HtmlText, NoControlCharacterReachesATerminal) {
    const HtmlText page = html_to_text("<title>a\x1B[2Jb</title><p>x\x1B]0;owned\x07y\xC2\x9B "
                                       "z\xE2\x80\xAEtxt\xF3\xA0\x81\x81<pre>q\x1B[1m\n r</pre>");
    // The parser puts U+FFFD where a character may not be in HTML.
    EXPECT_EQ(page.title, "a\uFFFD[2Jb");
    EXPECT_EQ(page.text, "x\uFFFD]0;owned\uFFFDy\uFFFD ztxt\n\nq\uFFFD[1m\n r");
    EXPECT_EQ(plain_line("a\x1B[2J\xC2\x9B"
                         "b\x07"),
              "a[2Jb");
}

TEST(HtmlText, DeepNestingNeitherOverflowsTheStackNorTakesForever) {
    HtmlLimits limits;
    limits.max_seconds = 0.3;
    for (const std::string tag : {"<div>", "<b>", "<table><tr><td>", "<ul><li>", "<p><b>", "<svg>", "<a><p>",
                                  "<font color=x><p>", "<template>", "<select>", "<form>"}) {
        const std::string html = repeated(tag, 200'000) + "end";
        try {
            const HtmlText page = html_to_text(html, limits);
            EXPECT_LE(page.text.size(), html.size() * 4) << tag;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
        }
    }
    EXPECT_EQ(html_to_text(repeated("<div>", 20'000) + "end").text, "end");
    EXPECT_EQ(html_to_text(repeated("<span>", 20'000) + "end").text, "end");
}

TEST(HtmlText, TemplatesAreNotShown) {
    EXPECT_EQ(html_to_text("<p>a<template><p>hidden</template> b").text, "a b");
}

TEST(HtmlText, LimitsAreNamed) {
    expect_error(ErrorCode::unsupported, {"more than"},
                 [] { html_to_text(std::string(5000, 'x'), HtmlLimits{.max_bytes = 4096}); });
    expect_error(ErrorCode::unsupported, {"MiB"},
                 [] { html_to_text(repeated("<br>", 100'000), HtmlLimits{.max_memory = size_t{4} << 20U}); });
}

TEST(PlainText, LinesAreOneLine) {
    EXPECT_EQ(plain_line("  a \t\n b\xC2\xA0"
                         "c\r\n"),
              "a b c");
    EXPECT_EQ(plain_line("\xC3(\xE2\x82"), "\xC3(\xE2\x82"); // broken UTF-8 is for others to replace
    EXPECT_EQ(without_controls("a\x00z\r\n\tb\x7F"), "a");   // up to the NUL of a C string
}

TEST(Url, AreReadAsTheyAreRequested) {
    const auto parts = parse_url("HTTPS://Example.ORG:8443/a%20b?q=1#f");
    ASSERT_TRUE(parts.has_value());
    EXPECT_EQ(parts->host, "example.org");
    EXPECT_EQ(parts->port, "8443");
    for (const char* wrong : {"ftp://a/", "file:///etc/passwd", "https://u:p@a/", "http://", "//a/b", "a", "",
                              "javascript:alert(1)", "http://[::1", "http://a b/"}) {
        EXPECT_FALSE(parse_url(wrong).has_value()) << wrong;
    }
    // Forms that hide an address are written out, so that nothing is mistaken for a name.
    EXPECT_EQ(parse_url("http://0x7f.1/")->host, "127.0.0.1");
    EXPECT_EQ(parse_url("http://2130706433/")->host, "127.0.0.1");
    EXPECT_EQ(resolve_url("https://a.example/x/y", "../z?q#f"), "https://a.example/z?q");
    EXPECT_EQ(url_with_query("https://a/s", {{"q", "a b&c"}, {"n", "ü"}}),
              "https://a/s?q=a%20b%26c&n=%C3%BC");
    EXPECT_EQ(query_value("a=1&q=x+y%21&q=2", "q"), "x y!");
    EXPECT_EQ(query_value("a=1", "q"), std::nullopt);
    EXPECT_EQ(same_page_key("https://www.Example.org/a/#x"), same_page_key("http://example.org/a"));
    EXPECT_NE(same_page_key("https://example.org/a?x=1"), same_page_key("https://example.org/a?x=2"));
}

} // namespace spool::test
