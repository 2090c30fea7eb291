// The result pages of DuckDuckGo that need no script: html.duckduckgo.com and lite.duckduckgo.com.
#pragma once

#include <string_view>

#include "web/result.h"

namespace spool {

/// Reads a page of either kind. Advertisements are left out, redirects through duckduckgo.com/l/ undone.
/// `engine` and `fetched` are not set. Throws as HtmlTree does.
ResultPage parse_duckduckgo(std::string_view html);

} // namespace spool
