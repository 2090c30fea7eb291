#include "web/web_search.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "web/bing.h"
#include "web/charset.h"
#include "web/duckduckgo.h"
#include "web/plain_text.h"
#include "web/url.h"

namespace spool {

namespace {

constexpr std::array<std::string_view, 3> known_engines = {"duckduckgo", "wikipedia", "bing"};
/// DuckDuckGo answers this instead of 200 when it shows a challenge.
constexpr int accepted = 202;

std::vector<std::string> html_types() { return {"text/html", "application/xhtml+xml"}; }
std::vector<std::string> json_types() { return {"application/json"}; }
std::vector<std::string> page_types() {
    return {"text/", "application/xhtml+xml", "application/json", "application/xml"};
}

bool is_html(const std::string& content_type) {
    return std::ranges::any_of(html_types(),
                               [&](const std::string& type) { return content_type.starts_with(type); });
}

std::string host_of(const std::string& url) {
    const auto parsed = parse_url(url);
    return parsed ? parsed->host + ":" + parsed->port : url;
}

std::string minutes_until(int64_t time) {
    return fmt::format("{} minutes",
                       std::max<int64_t>(1, (time - static_cast<int64_t>(std::time(nullptr)) + 59) / 60));
}

/// What one source cannot give is a note; only a user who stops ends the search. Call it from a handler.
void note_or_throw(const Error& error, const std::string& source, std::vector<std::string>& notes) {
    if (error.code() == ErrorCode::interrupted) {
        throw;
    }
    notes.push_back(source + error.what());
}

/// Appends what is not there yet; of the same page found again, a longer text is kept.
void merge(std::vector<WebResult>& all, std::vector<WebResult> more, std::map<std::string, size_t>& places) {
    for (WebResult& result : more) {
        const auto [place, added] = places.try_emplace(same_page_key(result.url), all.size());
        if (added) {
            all.push_back(std::move(result));
        } else if (all[place->second].text.empty()) {
            all[place->second].text = std::move(result.text);
        }
    }
}

} // namespace

WebSearch::WebSearch(WebSearchOptions options)
    : options_(std::move(options)), fetcher_(options_.fetch),
      cache_(options_.cache, options_.max_age, options_.cache_bytes) {
    for (const std::string& engine : options_.engines) {
        if (std::ranges::find(known_engines, engine) == known_engines.end()) {
            fail(ErrorCode::invalid_argument, "there is no engine '{}'; expected {}", engine,
                 fmt::join(known_engines, " or "));
        }
    }
}

WebSearchReply WebSearch::search(const std::string& query) {
    const std::string asked = plain_line(query);
    if (asked.empty()) {
        fail(ErrorCode::invalid_argument, "the query is empty");
    }
    WebSearchReply reply;
    std::map<std::string, size_t> places;
    for (const std::string& engine : options_.engines) {
        try {
            Results found = ask(engine, asked, reply.notes);
            found.resize(std::min(found.size(), options_.results));
            for (WebResult& result : found) {
                result.engine = engine;
            }
            if (found.empty()) {
                reply.notes.push_back(engine + ": found nothing");
            }
            merge(reply.results, std::move(found), places);
        } catch (const Error& error) {
            note_or_throw(error, engine + ": ", reply.notes);
        }
    }
    add_pages(reply);
    return reply;
}

std::vector<WebResult> WebSearch::ask(const std::string& engine, const std::string& query, Notes& notes) {
    if (engine == "wikipedia") {
        return wikipedia(query, notes);
    }
    return engine == "bing" ? bing(query) : duckduckgo(query);
}

HtmlText WebSearch::read(const std::string& url) {
    const CachedPage page = fetch(url, page_types());
    cache_.store(url, page);
    if (!is_html(page.content_type)) {
        return {.title = "", .text = without_controls(page.text)};
    }
    return html_to_text(page.text);
}

/// From the cache or the net; only replies of status 200 come back.
CachedPage WebSearch::fetch(const std::string& url, const std::vector<std::string>& types) {
    if (auto page = cache_.find(url)) {
        return *std::move(page);
    }
    const std::string host = host_of(url);
    if (const auto until = cache_.blocked_until(host)) {
        fail(ErrorCode::io, "{} wants no requests for {}", host, minutes_until(*until));
    }
    const HttpReply reply = fetcher_.get({.url = url, .types = types});
    if (reply.status == accepted || reply.status == 429) {
        fail(ErrorCode::io, "{} refuses (HTTP {}) and is left alone for {}", host, reply.status,
             minutes_until(cache_.block(host)));
    }
    if (reply.status != 200) {
        fail(ErrorCode::io, "{}: HTTP {}", url, reply.status);
    }
    CachedPage page{
        .url = reply.url,
        .content_type = reply.content_type,
        .text = to_utf8(reply.body, charset_parameter(reply.content_type), is_html(reply.content_type)),
        .fetched = static_cast<int64_t>(std::time(nullptr))};
    return page;
}

std::vector<WebResult> WebSearch::duckduckgo(const std::string& query) {
    try {
        return duckduckgo_page(options_.sites.duckduckgo_html, query);
    } catch (const Error& first) {
        if (first.code() == ErrorCode::interrupted) {
            throw;
        }
        try {
            return duckduckgo_page(options_.sites.duckduckgo_lite, query);
        } catch (const Error& second) {
            fail(second.code(), "{}; {}", first.what(), second.what());
        }
    }
}

std::vector<WebResult> WebSearch::duckduckgo_page(const std::string& site, const std::string& query) {
    const std::string url = url_with_query(site, {{"q", query}});
    const CachedPage page = fetch(url, html_types());
    ResultPage parsed = parse_duckduckgo(page.text);
    if (parsed.blocked) {
        fail(ErrorCode::io, "{} shows a challenge and is left alone for {}", host_of(site),
             minutes_until(cache_.block(host_of(site))));
    }
    if (parsed.results.empty() && !parsed.recognised) {
        fail(ErrorCode::bad_file, "{}: the page is of an unknown shape", site);
    }
    cache_.store(url, page);
    for (WebResult& result : parsed.results) {
        result.fetched = page.fetched;
    }
    return std::move(parsed.results);
}

/// A browser with an empty profile for every try: Bing answers beside the question at times, and then
/// differently to somebody else.
std::vector<WebResult> WebSearch::bing(const std::string& query) {
    constexpr int tries = 3;
    const std::string url = url_with_query(options_.sites.bing, {{"q", query}});
    const std::string host = host_of(url);
    for (int i = 0; i < tries; ++i) {
        CachedPage page = bing_page(url, host);
        ResultPage parsed = parse_bing(page.text);
        if (parsed.blocked) {
            fail(ErrorCode::io, "{} shows a challenge and is left alone for {}", host,
                 minutes_until(cache_.block(host)));
        }
        if (!parsed.recognised) {
            fail(ErrorCode::bad_file, "{}: the page is of an unknown shape", options_.sites.bing);
        }
        const bool any = !parsed.results.empty();
        Results results = without_junk(std::move(parsed.results), query);
        if (!results.empty() || !any) {
            cache_.store(url, page);
            for (WebResult& result : results) {
                result.fetched = page.fetched;
            }
            return results;
        }
    }
    fail(ErrorCode::io, "{} answered another question {} times", host, tries);
}

CachedPage WebSearch::bing_page(const std::string& url, const std::string& host) {
    if (auto page = cache_.find(url)) {
        return *std::move(page);
    }
    if (const auto until = cache_.blocked_until(host)) {
        fail(ErrorCode::io, "{} wants no requests for {}", host, minutes_until(*until));
    }
    fetcher_.wait_for_turn(host);
    BrowserPage shown = browse(url, options_.browser);
    return {.url = std::move(shown.url),
            .content_type = "text/html",
            .text = std::move(shown.html),
            .fetched = static_cast<int64_t>(std::time(nullptr))};
}

std::vector<WebResult> WebSearch::wikipedia(const std::string& query, Notes& notes) {
    WikipediaAnswer answer = wikipedia_page(query);
    if (answer.results.empty() && !answer.suggestion.empty()) {
        answer = wikipedia_page(answer.suggestion);
    }
    add_articles(answer.results, notes);
    return std::move(answer.results);
}

WikipediaAnswer WebSearch::wikipedia_page(const std::string& query) {
    const std::string url = url_with_query(options_.sites.wikipedia + "/w/api.php",
                                           {{"action", "query"},
                                            {"list", "search"},
                                            {"srsearch", query},
                                            {"srlimit", fmt::to_string(options_.results)},
                                            {"srinfo", "suggestion"},
                                            {"format", "json"},
                                            {"formatversion", "2"}});
    const CachedPage page = fetch(url, json_types());
    WikipediaAnswer answer = parse_wikipedia_search(page.text, options_.sites.wikipedia);
    cache_.store(url, page);
    for (WebResult& result : answer.results) {
        result.fetched = page.fetched;
    }
    return answer;
}

/// The API gives whole extracts one page at a time.
void WebSearch::add_articles(Results& results, Notes& notes) {
    for (size_t i = 0; i < std::min(results.size(), options_.articles); ++i) {
        const std::string url =
            url_with_query(options_.sites.wikipedia + "/w/api.php", {{"action", "query"},
                                                                     {"prop", "extracts"},
                                                                     {"explaintext", "1"},
                                                                     {"titles", results[i].title},
                                                                     {"redirects", "1"},
                                                                     {"format", "json"},
                                                                     {"formatversion", "2"}});
        try {
            const CachedPage page = fetch(url, json_types());
            const auto extracts = parse_wikipedia_extracts(page.text, options_.sites.wikipedia);
            cache_.store(url, page);
            if (!extracts.empty()) {
                results[i].text = extracts.front().text;
            }
        } catch (const Error& error) {
            note_or_throw(error, "wikipedia: ", notes);
        }
    }
}

void WebSearch::add_pages(WebSearchReply& reply) {
    size_t read_so_far = 0;
    size_t tries = 2 * options_.pages;
    for (WebResult& result : reply.results) {
        if (read_so_far == options_.pages || tries == 0) {
            return;
        }
        if (!result.text.empty()) {
            continue;
        }
        --tries;
        try {
            result.text = read(result.url).text;
            ++read_so_far;
        } catch (const Error& error) {
            note_or_throw(error, "", reply.notes);
        }
    }
}

std::filesystem::path default_web_cache() {
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
        return std::filesystem::path(cache) / "spool" / "web";
    }
    const char* home = std::getenv("HOME");
    return home == nullptr || *home == '\0' ? std::filesystem::path()
                                            : std::filesystem::path(home) / ".cache" / "spool" / "web";
}

} // namespace spool
