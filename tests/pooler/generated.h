// Pooler weights and token rows made from an integer hash, the same to the last bit as those of
// data/make_goldens.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pooler/pooler.h"

namespace spool::test {

/// [-1, 1) in steps of 2^-23: the splitmix64 finaliser of seed and index.
inline float uniform(uint64_t seed, uint64_t index) {
    uint64_t x = index + seed * 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    x ^= x >> 31U;
    return static_cast<float>(static_cast<int64_t>(x >> 40U) - (int64_t{1} << 23U)) * 0x1.0p-23F;
}

/// Offset and scale of the tensor's uniform values.
inline std::pair<float, float> spread(const std::string& name) {
    if (name.find("ln") != std::string::npos) {
        return name.ends_with("weight") ? std::pair(1.0F, 0x1p-3F) : std::pair(0.0F, 0x1p-4F);
    }
    if (name.ends_with("cross.in_proj_weight")) {
        return {0.0F, 0x1p-4F};
    }
    return {0.0F, name.ends_with("bias") && !name.ends_with("in_proj_weight") ? 0x1p-6F : 0x1p-5F};
}

inline PoolerWeights generated_weights(const PoolerShape& shape, float out_scale = -1.5F) {
    PoolerWeights weights{.shape = shape, .out_scale = out_scale, .tensors = {}};
    uint64_t seed = 0;
    for (const auto& [name, sizes] : pooler_tensors(shape)) {
        size_t count = 1;
        for (const int64_t size : sizes) {
            count *= static_cast<size_t>(size);
        }
        const auto [offset, scale] = spread(name);
        std::vector<float> values(count);
        for (size_t i = 0; i < count; ++i) {
            values[i] = offset + scale * uniform(seed, i);
        }
        weights.tensors.emplace(name, std::move(values));
        ++seed;
    }
    return weights;
}

/// Token rows [length, hidden] of the goldens.
inline std::vector<float> generated_rows(size_t length, size_t hidden) {
    std::vector<float> rows(length * hidden);
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i] = 0x1p-4F * uniform(1000, i);
    }
    return rows;
}

/// Serves `rows` [length, hidden], which must outlive the result.
inline PastRows rows_of(const std::vector<float>& rows, size_t hidden) {
    return [&rows, hidden](size_t first, size_t count, float* out) {
        std::copy_n(rows.data() + first * hidden, count * hidden, out);
    };
}

} // namespace spool::test
