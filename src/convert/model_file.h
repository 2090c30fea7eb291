// What the conversions of models of every kind have in common when they write their file.
#pragma once

#include <filesystem>
#include <string>

#include "convert/model.h"
#include "formats/gguf.h"

namespace spool {

/// general.architecture, .type, .name, .file_type and .quantization_version. An empty name in `options`: the
/// folder's.
void set_general_keys(GgufWriter& writer, const std::string& architecture,
                      const std::filesystem::path& folder, const ModelConversionOptions& options,
                      ggml_type type);

/// GgufWriter::write behind a progress bar.
void write_with_progress(const GgufWriter& writer, const std::filesystem::path& destination);

/// Warns of what could not be done exactly.
void warn(const std::string& source, const ModelReport& report);

} // namespace spool
