// Cross-entropy over a large vocabulary without ever holding all logits.
#pragma once

#include <cstdint>

#include "train/torch.h"

namespace spool::train {

struct TokenLosses {
    Tensor loss; ///< scalar: sum over rows of weight * (nll + kl_weight * kl); differentiable in `hidden` and
                 ///< `head`
    Tensor nll;  ///< [N], nats, without gradient
};

/// hidden [N, H], head [V, H], targets int64 [N], weights [N]. Logits exist for `chunk` rows at a time, and
/// each row's gradient is computed there and then, once. With `teacher` [N, H] (hidden states of the same
/// model with its full context, a constant) the loss has kl_weight * KL(teacher || student) per row besides.
TokenLosses cross_entropy(const Tensor& hidden, const Tensor& head, const Tensor& targets,
                          const Tensor& weights, const Tensor& teacher = {}, double kl_weight = 0,
                          int64_t chunk = 256);

} // namespace spool::train
