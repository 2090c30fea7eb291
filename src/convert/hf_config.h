// config.json of a Hugging Face model folder, for the architectures spool converts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "convert/architecture.h"
#include "core/json_file.h"

namespace spool {

/// Llama 3's scaling of the rotary frequencies (rope_type "llama3").
struct Llama3Rope {
    double factor = 0;
    double low_freq_factor = 0;
    double high_freq_factor = 0;
    uint32_t original_context = 0;
};

struct HfConfig {
    ModelShape shape;
    uint32_t ffn = 0;
    uint32_t head_size = 0;
    bool states_head_size =
        false; ///< write key and value lengths, as llama.cpp's converter does for Llama always
    uint32_t vocab = 0;
    uint32_t context = 0;
    double rope_base = 0;
    double rms_eps = 0;
    bool tied = false; ///< the output matrix is the embedding
    std::optional<Llama3Rope> llama3_rope;
    std::optional<uint32_t> mlx_group; ///< set for an MLX 4-bit folder
};

/// LlamaForCausalLM and Qwen2ForCausalLM. Throws Error{not_found|bad_file}, and Error{unsupported} naming the
/// field for what would make the converted model compute something else (other activations, sliding windows,
/// other rope types, MLP biases, quantisation methods other than MLX affine 4-bit).
HfConfig parse_hf_config(const JsonFields& config);

/// One factor per pair of a head's dimensions, by which llama.cpp divides the rotary frequency: the tensor
/// rope_freqs.weight. Formula: Llama 3.1's published scaling.
std::vector<float> rope_factors(const Llama3Rope& rope, double base, uint32_t head_size);

} // namespace spool
