// y = x W^T + b, with a low-rank update of the weight where there is one.
#pragma once

#include <optional>

#include "train/nf4.h"
#include "train/torch.h"

namespace spool::train {

/// W + scale * B A (LoRA, arXiv:2106.09685); scale = alpha / r.
struct LowRank {
    Tensor a; ///< [r, in]
    Tensor b; ///< [out, r]
    double scale = 1;
};

struct Linear {
    Tensor weight;                           ///< [out, in]; undefined where `packed` is set
    c10::intrusive_ptr<PackedWeight> packed; ///< the weight in NF4, expanded whenever it is used
    Tensor bias;                             ///< [out] or undefined
    std::optional<LowRank> adapter;
    at::ScalarType products = at::kFloat; ///< what products are made in

    int64_t out_features() const { return packed ? packed->rows : weight.size(0); }
    int64_t in_features() const { return packed ? packed->columns : weight.size(1); }
};

/// x [..., in] -> [..., out], float32 whatever the products are made in. One node of the graph: an adapter
/// costs its own small products and no further pass over the activations, forward or backward.
Tensor linear(const Tensor& x, const Linear& layer);

} // namespace spool::train
