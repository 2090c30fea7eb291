// Token ids and their places in a sequence, as libllama counts them.
#pragma once

#include <cstdint>

namespace spool {

using Token = int32_t;
using Position = int32_t;

} // namespace spool
