#include "train/model_shape.h"

#include <cmath>

#include "core/error.h"

namespace spool::train {

ModelShape read_model_shape(const GgufFile& model) {
    const std::string path = model.path().string();
    ModelShape shape;
    shape.architecture = model.string("general.architecture");
    if (shape.architecture != "llama" && shape.architecture != "qwen2") {
        fail(ErrorCode::unsupported, "{}: architecture '{}'; the trainer knows llama and qwen2", path,
             shape.architecture);
    }
    const auto key = [&](const char* name) { return shape.architecture + "." + name; };
    shape.layers = model.u32(key("block_count"));
    shape.width = model.u32(key("embedding_length"));
    shape.heads = model.u32(key("attention.head_count"));
    shape.kv_heads =
        model.optional_u32(key("attention.head_count_kv")).value_or(model.u32(key("attention.head_count")));
    shape.ffn = model.u32(key("feed_forward_length"));
    shape.context = model.u32(key("context_length"));
    shape.norm_eps = static_cast<double>(model.f32(key("attention.layer_norm_rms_epsilon")));
    if (model.find(key("rope.freq_base")) != nullptr) {
        shape.rope_base = static_cast<double>(model.f32(key("rope.freq_base")));
    }
    if (shape.heads == 0 || shape.kv_heads == 0 || shape.heads % shape.kv_heads != 0 ||
        shape.width % shape.heads != 0) {
        fail(ErrorCode::bad_file, "{}: width {}, {} heads and {} KV heads do not divide one another", path,
             shape.width, shape.heads, shape.kv_heads);
    }
    shape.head_dim = model.optional_u32(key("attention.key_length"))
                         .value_or(static_cast<uint32_t>(shape.width / shape.heads));
    if (const auto rotated = model.optional_u32(key("rope.dimension_count"));
        rotated && *rotated != shape.head_dim) {
        fail(ErrorCode::unsupported, "{}: {} of a head's {} columns are rotated; the trainer rotates all",
             path, *rotated, shape.head_dim);
    }
    if (const auto scaling = model.optional_string(key("rope.scaling.type")); scaling && *scaling != "none") {
        fail(ErrorCode::unsupported, "{}: RoPE scaling '{}'; the trainer knows none", path, *scaling);
    }
    const GgufTensor* embedding = model.find_tensor("token_embd.weight");
    if (embedding == nullptr || embedding->ne.size() != 2 || embedding->ne[0] != shape.width) {
        fail(ErrorCode::bad_file, "{}: token_embd.weight is missing or not {} wide", path, shape.width);
    }
    shape.vocab = embedding->ne[1];
    shape.tied = model.find_tensor("output.weight") == nullptr;
    return shape;
}

std::vector<double> rope_frequencies(const GgufFile& model, const ModelShape& shape) {
    const auto pairs = static_cast<size_t>(shape.head_dim / 2);
    std::vector<double> frequencies(pairs);
    for (size_t k = 0; k < pairs; ++k) {
        frequencies[k] =
            std::pow(shape.rope_base, -2.0 * static_cast<double>(k) / static_cast<double>(shape.head_dim));
    }
    if (const GgufTensor* factors = model.find_tensor("rope_freqs.weight")) {
        const std::vector<float> values = to_float(*factors);
        if (values.size() != pairs) {
            fail(ErrorCode::bad_file, "{}: rope_freqs.weight has {} values, expected {}",
                 model.path().string(), values.size(), pairs);
        }
        for (size_t k = 0; k < pairs; ++k) {
            frequencies[k] /= static_cast<double>(values[k]);
        }
    }
    return frequencies;
}

} // namespace spool::train
