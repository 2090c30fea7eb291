// The tensor types spool writes, by ggml's names and by the numbers of general.file_type.
#pragma once

#include <cstdint>
#include <string>

#include <ggml.h>

namespace spool {

/// "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0" or "q5_1". Throws Error{invalid_argument} listing
/// them.
ggml_type tensor_type_from_string(const std::string& text);

/// llama.cpp's number for a file most of whose tensors have `type`. Throws Error{invalid_argument} for other
/// types.
uint32_t file_type(ggml_type type);

} // namespace spool
