// The parts of the pooler that see only its queries: linear layers, layer norm, GELU, self-attention.
#pragma once

#include <cstddef>
#include <vector>

#include "pooler/lanes.h"
#include "pooler/team.h"

namespace spool::pooler {

/// Panels that hold `queries` queries.
constexpr size_t panels_for(size_t queries) { return (queries + lane_count - 1) / lane_count; }

/// The activations of all queries: [panels][features] Lanes; query i is lane i % 16 of panel i / 16. Lanes
/// beyond the last query hold finite numbers nobody reads.
struct Panels {
    Panels(size_t panels, size_t size) : count(panels), features(size), data(panels * size) {}
    Lanes* operator[](size_t panel) { return data.data() + panel * features; }
    const Lanes* operator[](size_t panel) const { return data.data() + panel * features; }
    size_t bytes() const { return data.size() * sizeof(Lanes); }

    size_t count;
    size_t features;
    std::vector<Lanes> data;
};

/// weight [rows, depth] row-major, bias [rows]; owned elsewhere.
struct Linear {
    const float* weight = nullptr;
    const float* bias = nullptr;
    size_t rows = 0;
    size_t depth = 0;
};

/// gain and bias [features]; owned elsewhere.
struct Norm {
    const float* gain = nullptr;
    const float* bias = nullptr;
};

/// Rows of a weight matrix that one task of a team multiplies.
constexpr size_t task_rows = 96;

/// out = weight in + bias, or out += weight in + bias.
void dense(Team& team, const Linear& linear, const Panels& in, Panels& out, bool accumulate = false);
/// PyTorch's LayerNorm over the features of each query, epsilon 1e-5.
void layer_norm(const Norm& norm, const Panels& in, Panels& out);
/// The exact GELU, x (1 + erf(x / sqrt 2)) / 2, in place.
void gelu(Team& team, Panels& values);
/// Attention of `queries` queries over each other. `qkv`: features [q | k | v], each of heads * d; `scores`:
/// scratch of [heads * panels] panels with room for `queries` features; out: heads * d features.
void self_attention(Team& team, const Panels& qkv, size_t queries, size_t heads, Panels& scores, Panels& out);

} // namespace spool::pooler
