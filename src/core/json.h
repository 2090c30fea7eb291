// JSON as used everywhere in spool: nlohmann's, with keys in insertion order.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace spool {

using Json = nlohmann::ordered_json;

/// `json` as text, on one line unless `indent` spaces are asked for; bytes that are no UTF-8 are replaced.
inline std::string json_text(const Json& json, int indent = -1) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

} // namespace spool
