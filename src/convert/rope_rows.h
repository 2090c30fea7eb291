// The order of the rows of q and k in models of the Llama architecture. Hugging Face rotates a head's first
// half against its second half; llama.cpp rotates neighbours, and stores each head's rows interleaved
// accordingly.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace spool {

/// For each row of the llama.cpp order, the row of the Hugging Face order it comes from. `rows` must be a
/// multiple of 2 * heads (checked by the callers, who can name the tensor).
std::vector<int64_t> rows_from_hugging_face(int64_t rows, uint32_t heads);
/// The inverse.
std::vector<int64_t> rows_to_hugging_face(int64_t rows, uint32_t heads);

} // namespace spool
