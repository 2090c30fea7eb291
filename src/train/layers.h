// The pieces of a transformer block that are not matrix products, each one node of the graph that keeps only
// what its gradient needs.
#pragma once

#include "train/torch.h"

namespace spool::train {

/// x / sqrt(mean(x^2) + eps) * weight over the last dimension. The weight is a constant unless it asks for
/// gradients.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

/// silu(gate) * up.
Tensor swiglu(const Tensor& gate, const Tensor& up);

/// Which columns of a head rotate together: neighbours (Llama in GGUF order) or column k with k + d/2
/// (Qwen2).
enum class RopePairs { neighbours, halves };

/// x [..., S, heads, d] rotated by the angles of its rows; `cosine` and `sine` [..., S, 1, d/2] broadcast
/// over the heads.
Tensor rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine, RopePairs pairs);

} // namespace spool::train
