// The engines' pages: saved ones to the exact lists, hostile ones without a crash.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "parse.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "web/bing.h"
#include "web/duckduckgo.h"
#include "web/wikipedia.h"

namespace spool::test {

namespace {

class SavedPage : public testing::TestWithParam<const char*> {};

std::string saved(const std::string& name) {
    const auto path = shared_data("web/" + name);
    return path ? read_text(*path) : std::string();
}

constexpr const char* absent = "the saved pages (../shared/data/web) are not here";

} // namespace

TEST_P(SavedPage, OfDuckDuckGoIsReadToTheExactList) {
    const std::string html = saved(std::string(GetParam()) + ".html");
    if (html.empty()) {
        GTEST_SKIP() << absent;
    }
    const ResultPage page = parse_duckduckgo(html);
    EXPECT_TRUE(page.recognised);
    EXPECT_FALSE(page.blocked);
    EXPECT_EQ(as_json(page.results), expected_list(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Web, SavedPage,
                         testing::Values("ddg_html_results_a", "ddg_html_results_b", "ddg_html_results_c",
                                         "ddg_html_with_ad"));

TEST(DuckDuckGo, BlockPagesAreTakenForBlockPages) {
    for (const std::string name : {"ddg_html_blocked.html", "ddg_lite_blocked.html"}) {
        const std::string html = saved(name);
        if (html.empty()) {
            GTEST_SKIP() << absent;
        }
        const ResultPage page = parse_duckduckgo(html);
        EXPECT_TRUE(page.blocked) << name;
        EXPECT_TRUE(page.results.empty()) << name;
    }
}

TEST(DuckDuckGo, LitePageHasItsRedirectsUndoneAndNoAdvertisement) {
    const ResultPage page = parse_duckduckgo(web_fixture("ddg_lite_results.html"));
    const Json expected = {
        {{"title", "Mount Fuji - Wikipedia"},
         {"url", "https://en.wikipedia.org/wiki/Mount_Fuji"},
         {"snippet",
          "Mount Fuji is an active stratovolcano with a summit elevation of 3,776.24 m (12,389 ft)."},
         {"published", ""}},
        {{"title", "Fuji & its neighbours"},
         {"url", "https://peaks.example/fuji?lang=en&unit=m"},
         {"snippet", ""},
         {"published", ""}}};
    EXPECT_EQ(as_json(page.results), expected);
    EXPECT_FALSE(page.blocked);
}

TEST(DuckDuckGo, OnlyWebAddressesBecomeResults) {
    const auto results_of = [](const std::string& link) {
        return parse_duckduckgo(fmt::format(R"(<div class="result results_links"><a class="result__a" )"
                                            R"(href="{}">Title</a></div>)",
                                            link))
            .results;
    };
    EXPECT_EQ(results_of("https://a.example/x").size(), 1);
    EXPECT_EQ(results_of("//duckduckgo.com/l/?uddg=http%3A%2F%2Fa.example%2Fx%2By")[0].url,
              "http://a.example/x+y");
    for (const char* link : {"javascript:alert(1)", "//duckduckgo.com/l/?uddg=javascript%3Aalert(1)",
                             "//duckduckgo.com/l/?other=1", "file:///etc/passwd",
                             "https://user:secret@a.example/", "https://duckduckgo.com/y.js?ad=1", ""}) {
        EXPECT_TRUE(results_of(link).empty()) << link;
    }
}

TEST(DuckDuckGo, PageWithoutResultsIsToldFromAForeignPage) {
    const ResultPage none = parse_duckduckgo(
        R"(<form><input name="q" value="xq"></form><div id="links"><div class="no-results">No results.</div></div>)");
    EXPECT_TRUE(none.recognised);
    EXPECT_TRUE(none.results.empty());
    EXPECT_FALSE(parse_duckduckgo("<p>Welcome to the hotel's network. Please log in.</p>").recognised);
    EXPECT_FALSE(parse_duckduckgo("").recognised);
}

TEST(Bing, SavedPageIsReadToTheExactList) {
    const std::string html = saved("bing_results.html");
    if (html.empty()) {
        GTEST_SKIP() << absent;
    }
    const ResultPage page = parse_bing(html);
    EXPECT_TRUE(page.recognised);
    EXPECT_EQ(as_json(page.results), expected_list("bing_results"));
    EXPECT_EQ(without_junk(page.results, "does caffeine affect sleep").size(), page.results.size());
}

TEST(Bing, RedirectsThatLeadNowhereAreLeftOut) {
    for (const char* link :
         {"https://www.bing.com/ck/a?u=a1!!!!", "https://www.bing.com/ck/a?u=b2aHR0cHM6",
          "https://www.bing.com/ck/a", "https://www.bing.com/ck/a?u=a1amF2YXNjcmlwdDphbGVydCgxKQ",
          "https://www.bing.com/aclick?ld=x"}) {
        EXPECT_TRUE(parse_bing(fmt::format(R"(<li class="b_algo"><h2><a href="{}">T</a></h2></li>)", link))
                        .results.empty())
            << link;
    }
}

TEST(Bing, DictionariesOnTheFirstWordAreJunk) {
    const std::string query = "does caffeine affect sleep";
    const std::vector<WebResult> dictionaries = {
        {.title = "DOES Definition & Meaning - Merriam-Webster",
         .url = "https://www.merriam-webster.com/dictionary/does",
         .snippet = "The meaning of DOES is present tense third-person singular of do."},
        {.title = "Does - definition of does by The Free Dictionary",
         .url = "https://www.thefreedictionary.com/does",
         .snippet = "Define does."},
        {.title = "Do vs. Does",
         .url = "https://grammar.example/do-does",
         .snippet = "When to use do and does."}};
    EXPECT_TRUE(without_junk(dictionaries, query).empty());

    std::vector<WebResult> mixed = dictionaries;
    mixed.push_back({.title = "Caffeine and Sleep", .url = "https://s.example/", .snippet = ""});
    mixed.push_back({.title = "Sleeping after coffee", .url = "https://t.example/", .snippet = ""});
    EXPECT_EQ(without_junk(mixed, query).size(), 2);
    // A single word can only be answered whole.
    EXPECT_EQ(without_junk(dictionaries, "does").size(), 3);
    EXPECT_EQ(without_junk(dictionaries, "what is the").size(), 3);
}

TEST(Wikipedia, SavedSearchesAreReadToTheExactLists) {
    for (const std::string name : {"search_default", "search_suggestion"}) {
        const std::string json = saved("wikipedia/" + name + ".json");
        if (json.empty()) {
            GTEST_SKIP() << absent;
        }
        EXPECT_EQ(as_json(parse_wikipedia_search(json, "https://en.wikipedia.org").results),
                  expected_list(name));
    }
}

TEST(Wikipedia, SuggestionIsRead) {
    const WikipediaAnswer answer = parse_wikipedia_search(
        R"({"query": {"searchinfo": {"totalhits": 0, "suggestion": "mount fuji"}, "search": []}})",
        "https://w");
    EXPECT_EQ(answer.suggestion, "mount fuji");
    EXPECT_TRUE(answer.results.empty());
}

TEST(Wikipedia, SavedExtractsAreRead) {
    const std::string json = saved("wikipedia/extract_summary.json");
    if (json.empty()) {
        GTEST_SKIP() << absent;
    }
    const auto extracts = parse_wikipedia_extracts(json, "https://en.wikipedia.org");
    ASSERT_EQ(extracts.size(), 1);
    EXPECT_EQ(extracts[0].title, "Python (programming language)");
    EXPECT_EQ(extracts[0].url, "https://en.wikipedia.org/wiki/Python_(programming_language)");
    const std::string full = Json::parse(json)["query"]["pages"]["23862"]["extract"].get<std::string>();
    EXPECT_EQ(extracts[0].text, full.substr(0, full.find_last_not_of(" \n") + 1));
    EXPECT_TRUE(
        parse_wikipedia_extracts(saved("wikipedia/page_missing.json"), "https://en.wikipedia.org").empty());
}

TEST(Wikipedia, TitlesBecomeAddresses) {
    EXPECT_EQ(wikipedia_url("https://en.wikipedia.org", "C++"), "https://en.wikipedia.org/wiki/C%2B%2B");
    EXPECT_EQ(wikipedia_url("https://de.wikipedia.org", "Zürich HB"),
              "https://de.wikipedia.org/wiki/Z%C3%BCrich_HB");
    EXPECT_EQ(wikipedia_url("https://en.wikipedia.org", "AC/DC? (100%)"),
              "https://en.wikipedia.org/wiki/AC/DC%3F_(100%25)");
}

TEST(Wikipedia, WrongAnswersAreNamed) {
    const auto search = [](const char* json) { (void)parse_wikipedia_search(json, "https://w"); };
    expect_error(ErrorCode::bad_file, {"not JSON"}, [&] { search("<html>"); });
    expect_error(ErrorCode::bad_file, {"query.search"}, [&] { search(R"({"query": 3})"); });
    expect_error(ErrorCode::io, {"ratelimited", "too many"},
                 [&] { search(R"({"error": {"code": "ratelimited", "info": "too many requests"}})"); });
    expect_error(ErrorCode::bad_file, {"query.pages"},
                 [] { (void)parse_wikipedia_extracts(R"({"batchcomplete": ""})", "https://w"); });
    // Wrongly typed fields are passed over.
    EXPECT_TRUE(parse_wikipedia_search(R"({"query": {"search": [1, {"title": 2}, null]}})", "https://w")
                    .results.empty());
}

TEST(Parsers, SurviveDamagedPages) {
    size_t pages = 0;
    for (const std::string name : {"ddg_html_with_ad.html", "bing_results.html", "ddg_html_blocked.html"}) {
        const std::string original = saved(name);
        if (original.empty()) {
            GTEST_SKIP() << absent;
        }
        for (size_t i = 1; i < 24; ++i) {
            std::string damaged = original.substr(original.size() * i / 48, original.size() / 2);
            for (size_t at = i * 7; at < damaged.size(); at += 97) {
                damaged[at] = static_cast<char>("<>/\"=& \xFFz"[(at + i) % 9]);
            }
            pages += parse_duckduckgo(damaged).results.size() + parse_bing(damaged).results.size() + 1;
        }
    }
    EXPECT_GE(pages, 69);
}

} // namespace spool::test
