// A folder of upstream's files to a bundle, and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include <ggml.h>

#include "formats/gguf.h"
#include "pooler/weights.h"

namespace spool {

struct BundleOptions {
    ggml_type pooler_type = GGML_TYPE_F32;   ///< F32, F16 or Q8_0
    std::optional<ggml_type> lora_type = {}; ///< nothing: the adapter's own
    std::optional<uint32_t> heads = {};      ///< as for import_pooler
    TrainedSettings trained = {};            ///< upstream's files do not state it
};

/// `folder` holds a pooler in any upstream form and perhaps a PEFT adapter, both trained for `base`. Writes
/// pooler.gguf, lora.gguf if there is an adapter, and bundle.json into `destination` (created). Throws
/// Error{incompatible} if the pooler's width is not the model's, and what import_pooler and peft_to_gguf
/// throw.
void bundle_from_upstream(const std::filesystem::path& folder, const GgufFile& base,
                          const std::filesystem::path& destination, const BundleOptions& options);

/// Writes pooler.safetensors, pooler_config.json and, if the bundle has an adapter, adapter_model.safetensors
/// and adapter_config.json into the folder `destination` (created). `base` may be nullptr, see gguf_to_peft.
void bundle_to_upstream(const std::filesystem::path& bundle, const GgufFile* base,
                        const std::filesystem::path& destination);

} // namespace spool
