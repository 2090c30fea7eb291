// AttnPoolSP for training: the pooler of src/pooler as a graph, under the names of pooler.gguf.
//
// The keys are not projected: the queries are taken to the space of the normalised past z instead
// (q Wk gk) z^T, and the values projected after the weighted sum, Wv (gk sum(a z) + bk) + bv. The past is the
// same for all layers, and its length enters two products per layer only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "pooler/weights.h"
#include "train/torch.h"

namespace spool::train {

struct Pooled {
    Tensor soft_prompt; ///< [P, n_sp, H]
    Tensor mass;        ///< [P, L], without gradient
};

class PoolerNet {
  public:
    /// Random weights as torch.nn.MultiheadAttention and Linear begin with; query ~ N(0, 0.02^2).
    /// `out_scale`: the norm of a soft-prompt vector at the start, usually that of a token embedding.
    PoolerNet(const PoolerShape& shape, double out_scale, uint64_t seed, at::Device device = at::kCPU);
    explicit PoolerNet(const PoolerWeights& weights, at::Device device = at::kCPU);

    const PoolerShape& shape() const { return shape_; }
    /// The trained tensors, "out_scale" among them. All require gradients.
    const std::map<std::string, Tensor>& parameters() const { return parameters_; }
    PoolerWeights weights() const;

    /// `past` [P or 1, L, H]: token embeddings of the kept tokens, padded; without gradient. `lengths` int64
    /// [P]: how many of them count (>= 1).
    Pooled forward(const Tensor& past, const Tensor& lengths) const;

  private:
    const Tensor& at(const std::string& name) const { return parameters_.at(name); }
    Tensor cross(const std::string& name, const Tensor& query, const Tensor& normalised, const Tensor& hidden,
                 Tensor& mass) const;
    Tensor self(const std::string& name, const Tensor& query) const;

    PoolerShape shape_;
    std::map<std::string, Tensor> parameters_;
};

/// The sinusoidal encoding of positions 0 .. length - 1, [length, width]: sin at even, cos at odd columns,
/// angle i * 10000^(-2k/width).
Tensor position_encoding(int64_t length, int64_t width, const at::TensorOptions& options);

} // namespace spool::train
