// Models of any shape with random weights: to train from nothing (`spool init`), to measure speed, which
// depends on the shape alone, and for tests of the machinery, which need no sense in the text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "formats/gguf.h"

namespace spool {

struct RandomModelShape {
    std::string architecture = "llama"; ///< "llama" or "qwen2" (q, k and v then have biases)
    uint32_t layers = 2;
    uint32_t width = 64;
    uint32_t heads = 4;
    uint32_t kv_heads = 2;
    uint32_t ffn = 128;
    uint32_t context = 4096;
    bool tied = true;               ///< the output shares the token embedding
    ggml_type type = GGML_TYPE_F32; ///< of the matrices: f32 or q4_1
    float rope_base = 10000.0F;
    std::string name = "random weights";
    std::string chat_template{}; ///< Jinja; empty: the tokenizer's
    uint64_t seed = 1;
};

/// DeepSeek-R1-Distill-Qwen-1.5B's shape, matrices in Q4_1 (its 151,936 tokens are the caller's
/// vocabulary's).
RandomModelShape qwen_1_5b_shape();

/// Writes a model that libllama loads, with the tokenizer of `tokenizer`. A `vocab_size` larger than its
/// vocabulary adds tokens that never occur in text; a smaller one keeps its first tokens, which works for
/// byte-level BPE, whose ids are in the order of its merges. Throws Error{invalid_argument|unsupported} for
/// shapes and vocabularies that make no model.
void write_random_model(const std::filesystem::path& path, const RandomModelShape& shape,
                        const GgufFile& tokenizer, uint32_t vocab_size = 0);

} // namespace spool
