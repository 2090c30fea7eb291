// The JSON header of a safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor.h"

namespace spool {

/// One entry of the header; begin and end are counted from the first byte behind the header.
struct SafetensorsEntry {
    std::string name;
    DType dtype = DType::f32;
    std::vector<int64_t> shape;
    uint64_t begin = 0;
    uint64_t end = 0;
    size_t position = 0; ///< in the file, where the entry ends: for messages
};

struct SafetensorsHeader {
    std::vector<SafetensorsEntry> entries;
    std::map<std::string, std::string> metadata;
};

/// The format's name of `dtype`: "F32", "BF16", ...
std::string_view safetensors_name(DType dtype);

/// Parses the header without building a document: memory is bounded by what the schema admits, whatever the
/// nesting. `source` begins the messages, `position` is where `text` starts in the file.
/// Throws Error{bad_file|unsupported}.
SafetensorsHeader parse_safetensors_header(const std::string& source, std::string_view text, size_t position);

} // namespace spool
