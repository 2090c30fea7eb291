#include "pooler/dense.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "pooler/multiply.h"

namespace spool::pooler {
namespace {

const float* floats(const Lanes* lanes) { return reinterpret_cast<const float*>(lanes); }

/// Softmax over `rows` consecutive Lanes, of factor * value.
void softmax(Lanes* values, size_t rows, float factor) {
    Lanes top = values[0];
    for (size_t i = 1; i < rows; ++i) {
        top = max(top, values[i]);
    }
    Lanes total = Lanes::all(0.0F);
    for (size_t i = 0; i < rows; ++i) {
        values[i] = exp_nonpositive((values[i] - top) * factor);
        total = total + values[i];
    }
    const Lanes scale = Lanes::all(1.0F) / total;
    for (size_t i = 0; i < rows; ++i) {
        values[i] = values[i] * scale;
    }
}

/// The mean of term(value), summed in blocks so that little is lost in float32.
template <typename Term>
Lanes average(std::span<const Lanes> values, Term term) {
    constexpr size_t block_terms = 32;
    Lanes total = Lanes::all(0.0F);
    for (size_t begin = 0; begin < values.size(); begin += block_terms) {
        Lanes block = Lanes::all(0.0F);
        for (const Lanes& value : values.subspan(begin, std::min(block_terms, values.size() - begin))) {
            block = block + term(value);
        }
        total = total + block;
    }
    return total * (1.0F / static_cast<float>(values.size()));
}

} // namespace

void dense(Team& team, const Linear& linear, const Panels& in, Panels& out, bool accumulate) {
    const size_t tasks = (linear.rows + task_rows - 1) / task_rows;
    team.run(tasks, [&](size_t task) {
        const size_t first = task * task_rows;
        const size_t rows = std::min(task_rows, linear.rows - first);
        multiply({.a = {.data = linear.weight + first * linear.depth, .row_stride = linear.depth},
                  .rows = rows,
                  .depth = linear.depth,
                  .panels = in.count,
                  .b = in[0],
                  .b_stride = in.features,
                  .c = out[0] + first,
                  .c_stride = out.features,
                  .accumulate = accumulate});
        for (size_t panel = 0; panel < out.count; ++panel) {
            for (size_t row = first; row < first + rows; ++row) {
                out[panel][row] = out[panel][row] + linear.bias[row];
            }
        }
    });
}

void layer_norm(const Norm& norm, const Panels& in, Panels& out) {
    constexpr float epsilon = 1e-5F;
    for (size_t panel = 0; panel < in.count; ++panel) {
        const std::span values(in[panel], in.features);
        const Lanes mean = average(values, [](const Lanes& x) { return x; });
        const Lanes variance = average(values, [&](const Lanes& x) { return (x - mean) * (x - mean); });
        const Lanes scale = Lanes::all(1.0F) / sqrt(variance + epsilon);
        for (size_t i = 0; i < in.features; ++i) {
            out[panel][i] = (in[panel][i] - mean) * scale * norm.gain[i] + norm.bias[i];
        }
    }
}

void gelu(Team& team, Panels& values) {
    constexpr size_t task_values = 128;
    const size_t tasks = (values.data.size() + task_values - 1) / task_values;
    team.run(tasks, [&](size_t task) {
        const size_t end = std::min(values.data.size(), (task + 1) * task_values);
        for (size_t i = task * task_values; i < end; ++i) {
            Lanes& value = values.data[i];
            for (size_t lane = 0; lane < lane_count; ++lane) {
                const float x = value[lane];
                value.set(lane, x * 0.5F * (1.0F + std::erf(x * (std::numbers::sqrt2_v<float> / 2.0F))));
            }
        }
    });
}

void self_attention(Team& team, const Panels& qkv, size_t queries, size_t heads, Panels& scores,
                    Panels& out) {
    const size_t hidden = out.features;
    const size_t width = hidden / heads;
    const float factor = 1.0F / std::sqrt(static_cast<float>(width));
    team.run(heads, [&](size_t head) {
        const size_t feature = head * width;
        Lanes* const weights = scores[head * qkv.count];
        for (size_t panel = 0; panel < qkv.count; ++panel) {
            const size_t first = panel * lane_count;
            multiply({.a = {.data = floats(qkv[panel] + hidden + feature),
                            .row_stride = 1,
                            .depth_stride = lane_count},
                      .rows = std::min(lane_count, queries - first),
                      .depth = width,
                      .panels = qkv.count,
                      .b = qkv[0] + feature,
                      .b_stride = qkv.features,
                      .c = weights + first,
                      .c_stride = scores.features});
        }
        for (size_t panel = 0; panel < qkv.count; ++panel) {
            softmax(weights + panel * scores.features, queries, factor);
        }
        for (size_t panel = 0; panel < qkv.count; ++panel) {
            const size_t first = panel * lane_count;
            multiply({.a = {.data = floats(qkv[panel] + 2 * hidden + feature), .row_stride = lane_count},
                      .rows = width,
                      .depth = std::min(lane_count, queries - first),
                      .panels = qkv.count,
                      .b = weights + first,
                      .b_stride = scores.features,
                      .c = out[0] + feature,
                      .c_stride = out.features,
                      .accumulate = panel > 0});
        }
    });
}

} // namespace spool::pooler
