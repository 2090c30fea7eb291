// The model architectures spool converts: Llama (SmolLM2 too) and Qwen2, and what their parts are called on
// either side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/gguf.h"
#include "pooler/weights.h"

namespace spool {

/// What a model's weights look like; the same for both sides.
struct ModelShape {
    std::string architecture; ///< "llama" or "qwen2"
    uint32_t layers = 0;
    uint32_t hidden = 0;
    uint32_t heads = 0;
    uint32_t kv_heads = 0;
};

/// A linear layer of a block: "self_attn.q_proj" in "model.layers.N." is "attn_q" in "blk.N.".
struct BlockModule {
    std::string_view hugging_face;
    std::string_view gguf;
};

/// The seven matrices of a block.
std::span<const BlockModule> block_modules();

/// The number of heads by which the output rows of `module` (a GGUF name such as "attn_q") are reordered
/// between Hugging Face and llama.cpp (rope_rows.h); 0 where they are not.
uint32_t rope_heads(const ModelShape& shape, std::string_view module);

/// Throws Error{unsupported} naming `source` for an architecture not in this table.
void check_architecture(const std::string& source, std::string_view architecture);

/// From a model GGUF's metadata. Throws Error{bad_file|unsupported}.
ModelShape model_shape(const GgufFile& model);

} // namespace spool
