// A question to the search engines, and the pages that they name.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "web/browser.h"
#include "web/fetcher.h"
#include "web/html_text.h"
#include "web/result.h"
#include "web/web_cache.h"
#include "web/wikipedia.h"

namespace spool {

struct WebSites {
    std::string duckduckgo_html = "https://html.duckduckgo.com/html/";
    std::string duckduckgo_lite = "https://lite.duckduckgo.com/lite/";
    std::string wikipedia = "https://en.wikipedia.org";
    std::string bing = "https://www.bing.com/search";
};

struct WebSearchOptions {
    FetchOptions fetch = {};
    WebSites sites = {};
    /// Asked in this order. "bing" needs Chromium and chromedriver, and is only asked if it stands here.
    std::vector<std::string> engines = {"duckduckgo", "wikipedia"};
    BrowserOptions browser = {};
    size_t results = 8;               ///< of each engine, at most
    size_t articles = 2;              ///< of Wikipedia's results that get their whole text
    size_t pages = 0;                 ///< of the other results whose page is read, from the first one on
    std::filesystem::path cache = {}; ///< folder; empty: none
    std::chrono::hours max_age{24};
    size_t cache_bytes = size_t{64} << 20;
};

struct WebSearchReply {
    std::vector<WebResult> results; ///< no page twice, each engine's in its order
    /// One line for each engine or page that gave nothing: which, and why.
    std::vector<std::string> notes;
};

class WebSearch {
  public:
    /// Throws Error{invalid_argument} for an engine that is not known.
    explicit WebSearch(WebSearchOptions options);

    /// Asks the engines. What one cannot give is a note, not an error. Throws Error{invalid_argument} for an
    /// empty query, Error{interrupted}.
    WebSearchReply search(const std::string& query);

    /// A page's text: HTML without its frame, other text as it is. Throws as Fetcher::get and html_to_text,
    /// and Error{io} for a status other than 200.
    HtmlText read(const std::string& url);

  private:
    using Results = std::vector<WebResult>;
    using Notes = std::vector<std::string>;

    CachedPage fetch(const std::string& url, const std::vector<std::string>& types);
    Results duckduckgo(const std::string& query);
    Results duckduckgo_page(const std::string& site, const std::string& query);
    Results ask(const std::string& engine, const std::string& query, Notes& notes);
    Results bing(const std::string& query);
    CachedPage bing_page(const std::string& url, const std::string& host);
    Results wikipedia(const std::string& query, Notes& notes);
    WikipediaAnswer wikipedia_page(const std::string& query);
    void add_articles(Results& results, Notes& notes);
    void add_pages(WebSearchReply& reply);

    WebSearchOptions options_;
    Fetcher fetcher_;
    WebCache cache_;
};

/// $XDG_CACHE_HOME/spool/web or ~/.cache/spool/web; empty if neither variable is set.
std::filesystem::path default_web_cache();

} // namespace spool
