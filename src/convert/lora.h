// PEFT LoRA adapters to lora.gguf, llama.cpp's own adapter format, and back.
//
// lora.gguf: general.type "adapter", general.architecture, adapter.type "lora", adapter.lora.alpha f32, and
// for each adapted matrix blk.N.MODULE.weight.lora_a ne=[in, r] and .lora_b ne=[r, out]; the effective weight
// is W + alpha / r * B A. In the Llama architecture the rows of q's and k's B are reordered like those of the
// weight (rope_rows.h). spool adds spool.base.{architecture,name,vocab_sha256,head_count,head_count_kv},
// which llama.cpp ignores: with the head counts the file can be turned back without the model.
#pragma once

#include <filesystem>
#include <optional>

#include <ggml.h>

#include "formats/gguf.h"

namespace spool {

/// `source`: adapter_model.safetensors or its folder; adapter_config.json lies beside it. `type`: F32, F16 or
/// BF16, or nothing to keep the adapter's own. The adapter is checked against `base`, the model it was
/// trained for: layers, shapes, rank. Throws Error{unsupported} naming the field for whatever lora.gguf
/// cannot say (rsLoRA, DoRA, biases, modules_to_save, embeddings, per-module ranks, initialisations that
/// changed the base weights).
void peft_to_gguf(const std::filesystem::path& source, const GgufFile& base,
                  const std::filesystem::path& destination, std::optional<ggml_type> type = {});

/// Writes adapter_model.safetensors and adapter_config.json into the folder `destination` (created). Head
/// counts come from the file, else from `base`. Throws Error{bad_file|unsupported|invalid_argument}.
void gguf_to_peft(const std::filesystem::path& source, const GgufFile* base,
                  const std::filesystem::path& destination);

/// Throws as the conversions do if the adapter is incomplete or holds what they refuse; without the base
/// model its shapes are not checked.
void check_peft(const std::filesystem::path& source);
void check_lora(const std::filesystem::path& source);

} // namespace spool
