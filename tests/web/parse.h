// Comparing what a parser reads with the lists that make_expected.py wrote.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/json.h"
#include "support/data.h"
#include "web/result.h"

namespace spool::test {

inline Json as_json(const std::vector<WebResult>& results) {
    Json list = Json::array();
    for (const WebResult& result : results) {
        list.push_back({{"title", result.title},
                        {"url", result.url},
                        {"snippet", result.snippet},
                        {"published", result.published}});
    }
    return list;
}

inline Json expected_list(const std::string& name) {
    return Json::parse(read_text(fixture("web/data/" + name + ".json")));
}

inline std::string web_fixture(const std::string& name) { return read_text(fixture("web/data/" + name)); }

} // namespace spool::test
