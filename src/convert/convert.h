// The one door to every conversion: what to do follows from what the source is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <ggml.h>

#include "convert/model.h"
#include "convert/source.h"
#include "pooler/weights.h"

namespace spool {

struct ConvertOptions {
    std::optional<ggml_type> type = {};             ///< of the pooler, adapter or model that is written
    std::optional<ggml_type> lora_type = {};        ///< of a bundle's adapter; nothing: its own
    std::optional<std::filesystem::path> base = {}; ///< GGUF of the model a pooler or adapter was trained for
    std::optional<std::filesystem::path> tokenizer_from = {}; ///< see ModelConversionOptions
    std::optional<uint32_t> heads = {};                       ///< see import_pooler
    std::string name = {};                                    ///< general.name of a model
    TrainedSettings trained = {};                             ///< recorded in pooler.gguf and bundle.json
};

struct ConvertReport {
    SourceKind source = SourceKind::gguf_model;
    std::vector<std::filesystem::path> written;
    ModelReport model; ///< all zero unless a model was converted
};

/// | source                                | destination                                              |
/// |---------------------------------------|----------------------------------------------------------|
/// | upstream pooler                       | pooler.gguf                                              |
/// | pooler.gguf                           | *.safetensors with pooler_config.json, or *.gguf         |
/// | PEFT adapter                          | lora.gguf (needs base)                                   |
/// | lora.gguf                             | a folder: adapter_model.safetensors, adapter_config.json |
/// | folder with pooler and perhaps adapter | a bundle folder (needs base)                            |
/// | bundle                                | a folder of upstream files                               |
/// | Hugging Face, MLX folder; model GGUF  | *.gguf                                                   |
///
/// Throws Error{invalid_argument} for a destination that does not fit the source or an option that is needed,
/// and what the conversions throw. Nothing half-written is left under its final name.
ConvertReport convert(const std::filesystem::path& source, const std::filesystem::path& destination,
                      const ConvertOptions& options);

} // namespace spool
