// What a text is made of for a model.
#pragma once

#include <cstdint>

namespace spool {

/// An id in a model's vocabulary, 0 <= id < vocab_size. The same type as libllama's.
using Token = int32_t;

} // namespace spool
