// What every search engine gives back. All text comes from strangers: it is data to quote, nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spool {

struct WebResult {
    std::string title;
    std::string url; ///< absolute, http or https, the engine's redirect undone
    std::string snippet;
    std::string text = {};      ///< longer: Wikipedia's extract or, if it was asked for, the page; else empty
    std::string published = {}; ///< as the engine states it, empty if it does not
    std::string engine = {};    ///< "duckduckgo", "wikipedia" or "bing"
    int64_t fetched = 0;        ///< seconds since 1970 when the engine answered
};

/// One page of results as its parser reads it.
struct ResultPage {
    std::vector<WebResult> results;
    bool blocked = false; ///< the engine shows a challenge instead of results
    /// The page is of the shape the parser knows, so that no results means that there are none.
    bool recognised = false;
};

} // namespace spool
