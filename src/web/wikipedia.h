// Answers of MediaWiki's API (action=query): search, suggestion, extracts. Either formatversion is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "web/result.h"

namespace spool {

struct WikipediaAnswer {
    std::vector<WebResult> results; ///< `engine` and `fetched` are not set
    std::string suggestion;         ///< how Wikipedia would have spelled the query; empty if it agrees
};

struct WikipediaExtract {
    std::string title;
    std::string url;
    std::string text; ///< plain, lines as Wikipedia gives them
};

/// The address of the article `title` on `site` ("https://en.wikipedia.org").
std::string wikipedia_url(const std::string& site, const std::string& title);

/// list=search. Throws Error{bad_file} if `json` is no such answer, Error{io} with the API's words if it is
/// the API's error message.
WikipediaAnswer parse_wikipedia_search(std::string_view json, const std::string& site);
/// prop=extracts&explaintext=1; pages that are missing or have no text are left out. Throws as above.
std::vector<WikipediaExtract> parse_wikipedia_extracts(std::string_view json, const std::string& site);

} // namespace spool
