// Bing's result page, as a browser shows it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "web/result.h"

namespace spool {

/// Reads li.b_algo; redirects through bing.com/ck/a are undone. `engine` and `fetched` are not set. Throws as
/// HtmlTree does.
ResultPage parse_bing(std::string_view html);

/// Bing sometimes answers the first word alone ("does caffeine ..." with dictionaries on "does"). True if
/// title, snippet or address share a telling word with the rest of the query, or if it has none.
bool answers_whole_query(const WebResult& result, const std::string& query);

/// What Bing really found: those of `results` that answer the whole query; none at all if they are less than
/// a third, for then the page is about something else and has to be asked for again.
std::vector<WebResult> without_junk(std::vector<WebResult> results, const std::string& query);

} // namespace spool
