#include "web/wikipedia.h"

#include <algorithm>

#include "core/error.h"
#include "core/json.h"
#include "web/html_tree.h"
#include "web/plain_text.h"
#include "web/url.h"

namespace spool {

namespace {

/// The field `name` of an object, null if there is none.
const Json& field(const Json& object, const char* name) {
    static const Json null;
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found == object.end() ? null : *found;
}

std::string text_field(const Json& object, const char* name) {
    const Json& value = field(object, name);
    return value.is_string() ? value.get<std::string>() : std::string();
}

Json parse_answer(std::string_view text) {
    Json answer = Json::parse(text, nullptr, false);
    if (!answer.is_object()) {
        fail(ErrorCode::bad_file, "Wikipedia's answer ({} bytes) is not JSON", text.size());
    }
    if (const Json& error = field(answer, "error"); error.is_object()) {
        fail(ErrorCode::io, "Wikipedia refused: {} ({})", plain_line(text_field(error, "info")),
             plain_line(text_field(error, "code")));
    }
    return answer;
}

} // namespace

std::string wikipedia_url(const std::string& site, const std::string& title) {
    std::string name = title;
    std::ranges::replace(name, ' ', '_');
    return site + "/wiki/" + percent_encode(name, "!$()*,/:;@");
}

WikipediaAnswer parse_wikipedia_search(std::string_view json, const std::string& site) {
    const Json answer = parse_answer(json);
    const Json& query = field(answer, "query");
    const Json& hits = field(query, "search");
    if (!hits.is_array()) {
        fail(ErrorCode::bad_file, "Wikipedia's answer has no list query.search");
    }
    WikipediaAnswer found;
    found.suggestion = plain_line(text_field(field(query, "searchinfo"), "suggestion"));
    found.results.reserve(hits.size());
    for (const Json& hit : hits) {
        const std::string title = text_field(hit, "title");
        if (!title.empty()) {
            found.results.push_back({.title = plain_line(title),
                                     .url = wikipedia_url(site, title),
                                     .snippet = html_line(HtmlTree(text_field(hit, "snippet")).document()),
                                     .published = text_field(hit, "timestamp").substr(0, 10)});
        }
    }
    return found;
}

std::vector<WikipediaExtract> parse_wikipedia_extracts(std::string_view json, const std::string& site) {
    const Json answer = parse_answer(json);
    const Json& pages = field(field(answer, "query"), "pages");
    if (!pages.is_structured()) {
        fail(ErrorCode::bad_file, "Wikipedia's answer has no query.pages");
    }
    std::vector<WikipediaExtract> extracts;
    for (const Json& page : pages) {
        const std::string title = text_field(page, "title");
        std::string text = without_controls(text_field(page, "extract"));
        while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
            text.pop_back();
        }
        if (!title.empty() && !text.empty()) {
            extracts.push_back({plain_line(title), wikipedia_url(site, title), std::move(text)});
        }
    }
    return extracts;
}

} // namespace spool
