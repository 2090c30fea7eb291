// JSON as used everywhere in spool: nlohmann's, with keys in insertion order.
#pragma once

#include <nlohmann/json.hpp>

namespace spool {

using Json = nlohmann::ordered_json;

} // namespace spool
