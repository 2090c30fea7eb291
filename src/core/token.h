// Token ids and their places in a sequence, of the same types as libllama's.
#pragma once

#include <cstdint>

namespace spool {

/// An id in a model's vocabulary, 0 <= id < vocab_size.
using Token = int32_t;
/// Where a row stands in its sequence, from 0.
using Position = int32_t;

} // namespace spool
