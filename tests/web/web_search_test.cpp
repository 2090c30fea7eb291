// Engines that work, refuse, know another spelling, or send something else; and the pages they name.
#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "local_site.h"
#include "parse.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "web/web_search.h"

namespace spool::test {

namespace {

constexpr const char* challenge =
    R"(<html><body><form id="challenge-form" action="//duckduckgo.com/anomaly.js">
<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div></form></body></html>)";

std::string search_answer(const std::vector<std::string>& titles, const std::string& suggestion = "") {
    Json found = Json::array();
    for (const std::string& title : titles) {
        found.push_back({{"title", title}, {"snippet", "about <b>" + title + "</b>"}, {"pageid", 1}});
    }
    Json query = {{"search", found}};
    if (!suggestion.empty()) {
        query["searchinfo"] = {{"suggestion", suggestion}};
    }
    return Json{{"query", query}}.dump();
}

class WebSearchTest : public testing::Test {
  protected:
    WebSearchTest() {
        options_.fetch = site_.quick();
        options_.sites = {.duckduckgo_html = site_.url("/html/"),
                          .duckduckgo_lite = site_.other_name("/lite/"), // as DuckDuckGo's are two hosts
                          .wikipedia = site_.url()};
        site_.server().Get("/w/api.php",
                           [this](const httplib::Request& request, httplib::Response& response) {
                               ++wikipedia_requests_;
                               response.set_content(wikipedia(request), "application/json; charset=utf-8");
                           });
    }

    virtual std::string wikipedia(const httplib::Request& request) {
        if (request.get_param_value("prop") == "extracts") {
            return Json{{"query",
                         {{"pages",
                           {{{"title", request.get_param_value("titles")},
                             {"extract", "All of " + request.get_param_value("titles") + "."}}}}}}}
                .dump();
        }
        return search_answer({"Mount Fuji", "Fuji (city)", "Fujifilm"});
    }

    WebSearchReply ask(const std::string& query, std::vector<std::string> engines) {
        options_.engines = std::move(engines);
        WebSearch search(options_);
        return search.search(query);
    }

    void lite() { site_.page("/lite/", web_fixture("ddg_lite_results.html")); }

    TemporaryFolder folder_;
    LocalSite site_;
    WebSearchOptions options_;
    int wikipedia_requests_ = 0;
};

} // namespace

TEST_F(WebSearchTest, ReadsWikipediasResultsAndTheFirstArticles) {
    site_.start();
    const WebSearchReply reply = ask("mount fuji", {"wikipedia"});
    ASSERT_EQ(reply.results.size(), 3);
    EXPECT_EQ(reply.results[0].title, "Mount Fuji");
    EXPECT_EQ(reply.results[0].url, site_.url("/wiki/Mount_Fuji"));
    EXPECT_EQ(reply.results[0].snippet, "about Mount Fuji");
    EXPECT_EQ(reply.results[0].text, "All of Mount Fuji.");
    EXPECT_EQ(reply.results[1].text, "All of Fuji (city).");
    EXPECT_EQ(reply.results[2].text, "");
    EXPECT_EQ(reply.results[0].engine, "wikipedia");
    EXPECT_GT(reply.results[0].fetched, 1'700'000'000);
    EXPECT_TRUE(reply.notes.empty());
}

TEST_F(WebSearchTest, TakesTheLitePageWhenTheOtherShowsAChallenge) {
    site_.page("/html/", challenge, "text/html", 202);
    lite();
    site_.start();
    const WebSearchReply reply = ask("height of mount fuji", {"duckduckgo"});
    ASSERT_FALSE(reply.results.empty());
    EXPECT_EQ(reply.results[0].url, "https://en.wikipedia.org/wiki/Mount_Fuji");
    EXPECT_EQ(reply.results[0].engine, "duckduckgo");
}

TEST_F(WebSearchTest, SeesAChallengeThatComesAs200) {
    site_.page("/html/", challenge);
    lite();
    site_.start();
    EXPECT_FALSE(ask("mount fuji", {"duckduckgo"}).results.empty());
    EXPECT_EQ(site_.requests, 2);
}

TEST_F(WebSearchTest, LeavesAHostAloneAfterAChallenge) {
    site_.page("/html/", challenge, "text/html", 202);
    site_.page("/lite/", challenge, "text/html", 202);
    site_.start();
    options_.cache = folder_.path();
    for (int i = 0; i < 3; ++i) { // each a process of its own, as far as the cache knows
        const WebSearchReply reply = ask("mount fuji", {"duckduckgo"});
        EXPECT_TRUE(reply.results.empty());
        ASSERT_EQ(reply.notes.size(), 1);
        EXPECT_NE(reply.notes[0].find("15 minutes"), std::string::npos) << reply.notes[0];
    }
    EXPECT_EQ(site_.requests, 2) << "each host was asked once";
}

TEST_F(WebSearchTest, AnEngineThatFailsDoesNotHideTheOthers) {
    site_.page("/html/", "gone", "text/html", 500);
    site_.page("/lite/", "<p>something else</p>");
    site_.start();
    const WebSearchReply reply = ask("mount fuji", {"duckduckgo", "wikipedia"});
    EXPECT_EQ(reply.results.size(), 3);
    ASSERT_EQ(reply.notes.size(), 1);
    EXPECT_NE(reply.notes[0].find("HTTP 500"), std::string::npos) << reply.notes[0];
    EXPECT_NE(reply.notes[0].find("unknown shape"), std::string::npos) << reply.notes[0];
}

TEST_F(WebSearchTest, NoPageComesTwice) {
    site_.page("/html/", "<p>something else</p>");
    lite();
    site_.start();
    options_.sites.wikipedia = "https://en.wikipedia.org"; // its pages' address; it cannot be reached
    const auto urls = [](const WebSearchReply& reply) {
        std::vector<std::string> all;
        all.reserve(reply.results.size());
        for (const WebResult& result : reply.results) {
            all.push_back(result.url);
        }
        std::ranges::sort(all);
        return all;
    };
    auto found = urls(ask("height of mount fuji", {"duckduckgo", "duckduckgo"}));
    EXPECT_TRUE(std::ranges::adjacent_find(found) == found.end());
}

TEST_F(WebSearchTest, AsksTheCacheFirst) {
    site_.start();
    options_.cache = folder_.path();
    const WebSearchReply first = ask("mount fuji", {"wikipedia"});
    const int requests = wikipedia_requests_;
    const WebSearchReply second = ask("  mount\nfuji ", {"wikipedia"});
    EXPECT_EQ(wikipedia_requests_, requests);
    ASSERT_EQ(second.results.size(), first.results.size());
    EXPECT_EQ(second.results[0].text, first.results[0].text);
    EXPECT_EQ(second.results[0].fetched, first.results[0].fetched) << "the time is when it was really asked";
}

TEST_F(WebSearchTest, ReadsPagesOfTheOtherResults) {
    site_.page("/fuji", web_fixture("mount_fuji.html"));
    site_.page(
        "/html/",
        "<div class='result results_links web-result'><h2 class='result__title'><a class='result__a' href='" +
            site_.url("/fuji") + "'>Fuji</a></h2><a class='result__snippet'>high</a></div>");
    site_.start();
    options_.pages = 1;
    const WebSearchReply reply = ask("mount fuji", {"duckduckgo"});
    ASSERT_EQ(reply.results.size(), 1);
    EXPECT_NE(reply.results[0].text.find("3,776.24 m"), std::string::npos) << reply.results[0].text;
    EXPECT_EQ(reply.results[0].text.find("Log in"), std::string::npos);
}

TEST_F(WebSearchTest, RefusesPagesInsideTheHouse) {
    LocalSite inside;
    inside.page("/admin", "secret");
    inside.start();
    site_.page(
        "/html/",
        "<div class='result results_links web-result'><h2 class='result__title'><a class='result__a' href='" +
            inside.url("/admin") + "'>Fuji</a></h2><a class='result__snippet'>high</a></div>");
    site_.start();
    options_.pages = 1;
    const WebSearchReply reply = ask("mount fuji", {"duckduckgo"});
    ASSERT_EQ(reply.results.size(), 1);
    EXPECT_EQ(reply.results[0].text, "");
    ASSERT_EQ(reply.notes.size(), 1);
    EXPECT_NE(reply.notes[0].find("loopback"), std::string::npos) << reply.notes[0];
    EXPECT_EQ(inside.requests, 0);
}

TEST_F(WebSearchTest, WrongQuestionsAndEnginesAreNamed) {
    site_.start();
    expect_error(ErrorCode::invalid_argument, {"query is empty"}, [&] { ask(" \n\t", {"wikipedia"}); });
    expect_error(ErrorCode::invalid_argument, {"'altavista'", "duckduckgo or wikipedia or bing"},
                 [&] { ask("mount fuji", {"altavista"}); });
}

TEST_F(WebSearchTest, BingIsReadThroughABrowser) {
    const auto saved = shared_data("web/bing_results.html");
    if (!saved) {
        GTEST_SKIP() << "the saved pages (../shared/data/web) are not here";
    }
    site_.page("/search", read_text(*saved));
    options_.sites.bing = site_.url("/search");
    options_.cache = folder_.path();
    site_.start();
    const WebSearchReply reply = ask("does caffeine affect sleep", {"bing"});
    ASSERT_TRUE(reply.notes.empty()) << reply.notes[0];
    Json expected = expected_list("bing_results");
    while (expected.size() > options_.results) {
        expected.erase(expected.size() - 1);
    }
    EXPECT_EQ(as_json(reply.results), expected);
    const int requests = site_.requests;
    EXPECT_EQ(as_json(ask("does caffeine affect sleep", {"bing"}).results), expected);
    EXPECT_EQ(site_.requests, requests) << "from the cache";

    const WebSearchReply junk = ask("does granite contain uranium", {"bing"});
    EXPECT_TRUE(junk.results.empty());
    ASSERT_EQ(junk.notes.size(), 1);
    EXPECT_NE(junk.notes[0].find("another question 3 times"), std::string::npos) << junk.notes[0];
}

TEST_F(WebSearchTest, WithoutADriverBingSaysSo) {
    options_.browser.driver = "/nowhere/chromedriver";
    site_.start();
    const WebSearchReply reply = ask("mount fuji", {"bing", "wikipedia"});
    EXPECT_EQ(reply.results.size(), 3);
    ASSERT_EQ(reply.notes.size(), 1);
    EXPECT_NE(reply.notes[0].find("'/nowhere/chromedriver' cannot be started"), std::string::npos)
        << reply.notes[0];
}

namespace {

class Misspelt : public WebSearchTest {
  protected:
    std::string wikipedia(const httplib::Request& request) override {
        if (request.get_param_value("prop") == "extracts") {
            return R"({"error": {"code": "ratelimited", "info": "too many requests"}})";
        }
        const std::string query = request.get_param_value("srsearch");
        return query == "mount fuji" ? search_answer({"Mount Fuji"})
                                     : search_answer({}, query == "a"   ? "b"
                                                         : query == "b" ? "a"
                                                                        : "mount fuji");
    }
};

} // namespace

TEST_F(Misspelt, WordsAreAskedAgainAsWikipediaSpellsThem) {
    site_.start();
    const WebSearchReply reply = ask("monut fuji", {"wikipedia"});
    ASSERT_EQ(reply.results.size(), 1);
    EXPECT_EQ(reply.results[0].text, "") << "its article was refused";
    ASSERT_EQ(reply.notes.size(), 1);
    EXPECT_NE(reply.notes[0].find("too many requests"), std::string::npos);
}

TEST_F(Misspelt, SuggestionsAreFollowedOnce) {
    site_.start();
    EXPECT_TRUE(ask("a", {"wikipedia"}).results.empty());
    EXPECT_EQ(wikipedia_requests_, 2);
}

} // namespace spool::test
