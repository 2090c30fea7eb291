// A Llama or Qwen2 model for training, with the weights of a GGUF file in that file's own row order.
//
//   x = token_embd[ids]                                             [S, H]
//   block: h = rms_norm(x) ; q, k, v = h Wq, h Wk, h Wv, q and k rotated by their positions
//          x += attend(q, k, v, plan) Wo
//          h = rms_norm(x) ; x += (silu(h Wgate) * (h Wup)) Wdown
//   hidden = rms_norm(x) ; logits = hidden Whead^T                   [V, H], the embedding itself if tied
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/attention.h"
#include "train/layers.h"
#include "train/linear.h"
#include "train/model_shape.h"

namespace spool::train {

struct Block {
    Tensor attn_norm; ///< [H]
    Tensor ffn_norm;  ///< [H]
    Linear attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down;
};

struct LanguageModel {
    ModelShape shape;
    Tensor token_embd; ///< [V, H]
    std::vector<Block> blocks;
    Tensor output_norm;             ///< [H]
    Tensor output;                  ///< [V, H]; the same tensor as token_embd if tied
    Tensor output_bf16;             ///< a rounded copy that the loss uses instead, if defined
    Tensor rope_frequencies;        ///< float64 [d/2]
    bool checkpoint_blocks = false; ///< keep only each block's input and compute the rest again going back

    /// The seven matrices of block `layer` under their GGUF names ("attn_q", ...).
    std::vector<std::pair<std::string, Linear*>> matrices(size_t layer);

    /// What the loss multiplies hidden states by.
    const Tensor& head() const { return output_bf16.defined() ? output_bf16 : output; }
    /// ids int64 [...] -> [..., H].
    Tensor embed(const Tensor& ids) const;
    /// x [S, H] at `positions` int64 [S] -> what the first `count` blocks make of it, [S, H].
    Tensor through_blocks(const Tensor& x, const Tensor& positions, const AttentionPlan& plan,
                          size_t count) const;
    /// The hidden states that the head reads, [S, H].
    Tensor forward(const Tensor& x, const Tensor& positions, const AttentionPlan& plan) const;
};

/// Dequantises every tensor to float32 on `device`. Throws Error{bad_file} naming what is missing or of
/// another shape.
LanguageModel load_language_model(const GgufFile& file, at::Device device = at::kCPU);

/// Adds a low-rank update to every matrix: A uniform in +-1/sqrt(in) (as PEFT), B zero, so that the model is
/// unchanged at first.
void add_adapters(LanguageModel& model, int64_t rank, double alpha, uint64_t seed);

/// While it lives, the model computes as if it had no adapters.
class AdaptersAside {
  public:
    explicit AdaptersAside(LanguageModel& model);
    ~AdaptersAside();
    AdaptersAside(const AdaptersAside&) = delete;
    AdaptersAside& operator=(const AdaptersAside&) = delete;

  private:
    LanguageModel& model_;
    std::vector<std::optional<LowRank>> kept_;
};

/// A and B of every adapted matrix, named as lora.gguf names them.
std::vector<std::pair<std::string, Tensor>> adapter_parameters(LanguageModel& model);

/// All weights under their GGUF names: norms, matrices, biases; embedding and head only if asked for.
std::vector<std::pair<std::string, Tensor>> model_parameters(LanguageModel& model, bool with_embedding);

/// Makes all products with the blocks' matrices and the head in bfloat16, sums and everything else staying in
/// float32. Frozen weights are kept in bfloat16, in half the memory; trained ones are rounded whenever used.
void multiply_in_bf16(LanguageModel& model, bool blocks_frozen, bool head_frozen);

/// Keeps the blocks' matrices in NF4.
void pack_matrices(LanguageModel& model, bool nested_scales);

} // namespace spool::train
