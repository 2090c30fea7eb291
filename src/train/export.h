// From training to the engine and back: bundles.
#pragma once

#include <filesystem>

#include "core/json.h"
#include "formats/gguf.h"
#include "train/settings.h"

namespace spool::train {

class Reader;

/// The bundle's pooler and adapter as the reader's weights. Throws Error{bad_file|incompatible} where shapes
/// differ or the bundle has an adapter and the reader none.
void load_bundle(Reader& reader, const std::filesystem::path& folder);

struct ExportOptions {
    ggml_type pooler = GGML_TYPE_F16;  ///< f32, f16 or q8_0
    ggml_type adapter = GGML_TYPE_F16; ///< f32 or f16
    uint32_t max_position = 0;         ///< the longest trace trained on
    Json recovered;                    ///< measured figures, for bundle.json
};

/// Writes pooler.gguf, lora.gguf (if there are adapters) and bundle.json into `folder`.
void write_bundle(Reader& reader, const Settings& settings, const GgufFile& model,
                  const std::filesystem::path& folder, const ExportOptions& options);

/// The whole model with its trained weights, as a GGUF file like `model`: matrices in `type`, adapters
/// merged.
void write_model(Reader& reader, const GgufFile& model, const std::filesystem::path& path, ggml_type type);

} // namespace spool::train
