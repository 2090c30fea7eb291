// How far two soft prompts or two masses are apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <vector>

namespace spool::test {

inline double max_difference(std::span<const float> a, std::span<const float> b) {
    double worst = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
    return worst;
}

inline double max_relative_difference(std::span<const float> found, std::span<const float> expected) {
    double worst = 0.0;
    for (size_t i = 0; i < found.size(); ++i) {
        const double wanted = expected[i];
        worst = std::max(worst, std::abs(static_cast<double>(found[i]) - wanted) / std::abs(wanted));
    }
    return worst;
}

inline double cosine(std::span<const float> a, std::span<const float> b) {
    double ab = 0.0;
    double aa = 0.0;
    double bb = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        ab += static_cast<double>(a[i]) * static_cast<double>(b[i]);
        aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
        bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    return ab / std::sqrt(aa * bb);
}

/// Pearson's correlation.
inline double correlation(std::span<const float> a, std::span<const float> b) {
    const auto centred = [](std::span<const float> values) {
        const double mean =
            std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
        std::vector<float> result;
        for (const float value : values) {
            result.push_back(static_cast<float>(value - mean));
        }
        return result;
    };
    return cosine(centred(a), centred(b));
}

/// Indices of the `count` largest values.
inline std::set<size_t> top(std::span<const float> values, size_t count) {
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t i, size_t j) { return values[i] > values[j]; });
    return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// Largest distance from the cut of `expected` among the indices that only one of the two top-half sets
/// holds; 0 if the sets are equal.
inline double top_half_disagreement(std::span<const float> found, std::span<const float> expected) {
    const size_t count = expected.size() / 2;
    const std::set<size_t> a = top(found, count);
    const std::set<size_t> b = top(expected, count);
    double cut = 0.0;
    for (const size_t i : b) {
        cut = cut == 0.0 ? expected[i] : std::min(cut, static_cast<double>(expected[i]));
    }
    double worst = 0.0;
    for (size_t i = 0; i < expected.size(); ++i) {
        if (a.contains(i) != b.contains(i)) {
            worst = std::max(worst, std::abs(static_cast<double>(expected[i]) - cut));
        }
    }
    return worst;
}

} // namespace spool::test
