// What the trainer has to know about a Llama or Qwen2 model: its sizes, as the GGUF file states them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/gguf.h"

namespace spool::train {

struct ModelShape {
    std::string architecture; ///< "llama" or "qwen2"
    int64_t layers = 0;
    int64_t width = 0; ///< H
    int64_t heads = 0;
    int64_t kv_heads = 0;
    int64_t head_dim = 0;
    int64_t ffn = 0;
    int64_t vocab = 0;
    int64_t context = 0; ///< positions the model was trained for
    double rope_base = 10000;
    double norm_eps = 1e-5;
    bool tied = false; ///< the output head shares the token embedding
};

/// Throws Error{unsupported} for another architecture or a rotation this trainer does not compute (a part of
/// the head, YaRN), Error{bad_file} for missing or contradictory sizes.
ModelShape read_model_shape(const GgufFile& model);

/// The angle of pair k at position 1: rope_base^(-2k/head_dim), divided by the file's rope_freqs where it has
/// them (Llama 3). head_dim/2 values.
std::vector<double> rope_frequencies(const GgufFile& model, const ModelShape& shape);

} // namespace spool::train
