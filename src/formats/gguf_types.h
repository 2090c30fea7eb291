// How the alternatives of GgufValue and GgufArray are numbered in a file.
#pragma once

#include <array>

#include <gguf.h>

#include "formats/gguf.h"

namespace spool {

/// The file's type of each alternative of GgufValue; GgufArray's alternatives are its first twelve.
inline constexpr std::array<gguf_type, std::variant_size_v<GgufValue>> gguf_types = {
    GGUF_TYPE_UINT8, GGUF_TYPE_INT8,    GGUF_TYPE_UINT16, GGUF_TYPE_INT16, GGUF_TYPE_UINT32,
    GGUF_TYPE_INT32, GGUF_TYPE_FLOAT32, GGUF_TYPE_UINT64, GGUF_TYPE_INT64, GGUF_TYPE_FLOAT64,
    GGUF_TYPE_BOOL,  GGUF_TYPE_STRING,  GGUF_TYPE_ARRAY};

inline gguf_type type_of(const GgufValue& value) { return gguf_types[value.index()]; }
inline gguf_type type_of(const GgufArray& array) { return gguf_types[array.index()]; }

} // namespace spool
