// The normaliser of a softmax.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace spool {

/// log(sum(exp(logits))), summed in double; logits[i] minus it is the log of i's probability. One logit at
/// least.
inline double log_sum_exp(std::span<const float> logits) {
    const float highest = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) {
        sum += std::exp(static_cast<double>(logit - highest));
    }
    return static_cast<double>(highest) + std::log(sum);
}

} // namespace spool
