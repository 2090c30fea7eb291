#include "pooler/pooler.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"
#include "pooler/dense.h"
#include "pooler/multiply.h"
#include "pooler/past.h"
#include "pooler/past_attention.h"
#include "pooler/team.h"

namespace spool {

using namespace pooler;

namespace {

/// One layer's weights as the computation wants them, all inside the map of PoolerWeights.
struct Layer {
    Norm lnq1, lnq2, lnq3;
    Linear cross_q;
    const float* cross_k = nullptr; ///< per head [hidden, d]: W_k,h transposed, times lnk's gain / sqrt(d)
    Linear cross_v;                 ///< with lnk's gain and bias folded in
    Linear cross_out;
    Linear self_in, self_out;
    Linear ffn_in, ffn_out;
};

/// Turns the d rows of each head [d, hidden] into [hidden, d] in place, row i times gain[i] / sqrt(d).
void absorb_keys(std::span<float> keys, std::span<const float> gain, size_t heads) {
    const size_t hidden = gain.size();
    const size_t width = hidden / heads;
    const double scale = 1.0 / std::sqrt(static_cast<double>(width));
    std::vector<float> rows(width * hidden);
    for (size_t head = 0; head < heads; ++head) {
        float* const block = keys.data() + head * width * hidden;
        std::copy_n(block, rows.size(), rows.begin());
        for (size_t i = 0; i < hidden; ++i) {
            const double factor = scale * static_cast<double>(gain[i]);
            for (size_t k = 0; k < width; ++k) {
                block[i * width + k] = static_cast<float>(factor * static_cast<double>(rows[k * hidden + i]));
            }
        }
    }
}

/// values [hidden, hidden] and its bias: W (g x + b) + c = (W diag(g)) x + (W b + c), in place.
void fold_norm(std::span<float> values, std::span<float> values_bias, std::span<const float> gain,
               std::span<const float> bias) {
    const size_t hidden = gain.size();
    for (size_t row = 0; row < hidden; ++row) {
        double offset = values_bias[row];
        for (size_t i = 0; i < hidden; ++i) {
            float& weight = values[row * hidden + i];
            offset += static_cast<double>(weight) * static_cast<double>(bias[i]);
            weight *= gain[i];
        }
        values_bias[row] = static_cast<float>(offset);
    }
}

} // namespace

class Pooler::Network {
  public:
    Network(PoolerWeights weights, int threads);

    const PoolerShape& shape() const { return weights_.shape; }
    size_t scratch_bytes() const;
    void set_threads(int threads) { team_ = std::make_unique<Team>(threads); }
    PoolResult pool(size_t past_length, const PastRows& rows);

  private:
    std::vector<float>& tensor(const std::string& name) { return weights_.tensors.at(name); }
    Norm norm(const std::string& name);
    Linear linear(const std::string& weight, const std::string& bias, size_t depth);
    Layer prepare(const std::string& block);

    void cross_attention(const Layer& layer, std::span<float> mass);
    void self_attention(const Layer& layer);
    void feed_forward(const Layer& layer);
    std::vector<float> soft_prompt();

    PoolerWeights weights_;
    std::vector<Layer> layers_;
    Norm ln_out_;
    std::unique_ptr<Team> team_;

    size_t panels_;
    Past past_;
    PastAttention past_attention_;
    Panels queries_;  ///< the residual stream
    Panels normed_;   ///< [hidden]
    Panels wide_;     ///< [3 * hidden]: q, k, v
    Panels attended_; ///< [hidden]
    Panels scores_;   ///< self-attention, per head [n_sp]
    Panels absorbed_; ///< per head [hidden]: cross-attention's queries in the past's space
    Panels context_;  ///< per head [hidden]: the weighted mean of the past
    Panels inner_;    ///< [ffn]
};

Pooler::Network::Network(PoolerWeights weights, int threads)
    : weights_(std::move(weights)), team_(std::make_unique<Team>(threads)), panels_(panels_for(shape().n_sp)),
      past_(shape().hidden), past_attention_(shape()), queries_(panels_, shape().hidden),
      normed_(panels_, shape().hidden), wide_(panels_, 3 * size_t{shape().hidden}),
      attended_(panels_, shape().hidden), scores_(shape().heads * panels_, panels_ * lane_count),
      absorbed_(shape().heads * panels_, shape().hidden), context_(shape().heads * panels_, shape().hidden),
      inner_(panels_, shape().ffn) {
    for (uint32_t i = 0; i < shape().layers; ++i) {
        layers_.push_back(prepare(fmt::format("blocks.{}.", i)));
    }
    ln_out_ = norm("ln_out");
}

Norm Pooler::Network::norm(const std::string& name) {
    return {.gain = tensor(name + ".weight").data(), .bias = tensor(name + ".bias").data()};
}

Linear Pooler::Network::linear(const std::string& weight, const std::string& bias, size_t depth) {
    return {.weight = tensor(weight).data(),
            .bias = tensor(bias).data(),
            .rows = tensor(bias).size(),
            .depth = depth};
}

Layer Pooler::Network::prepare(const std::string& block) {
    const size_t hidden = shape().hidden;
    const size_t matrix = hidden * hidden;
    const std::span cross(tensor(block + "cross.in_proj_weight"));
    const std::span cross_bias(tensor(block + "cross.in_proj_bias"));
    const std::vector<float>& gain = tensor(block + "lnk.weight");
    absorb_keys(cross.subspan(matrix, matrix), gain, shape().heads);
    fold_norm(cross.last(matrix), cross_bias.last(hidden), gain, tensor(block + "lnk.bias"));

    const auto square = [&](size_t part) {
        return Linear{.weight = cross.data() + part * matrix,
                      .bias = cross_bias.data() + part * hidden,
                      .rows = hidden,
                      .depth = hidden};
    };
    return {.lnq1 = norm(block + "lnq1"),
            .lnq2 = norm(block + "lnq2"),
            .lnq3 = norm(block + "lnq3"),
            .cross_q = square(0),
            .cross_k = cross.data() + matrix,
            .cross_v = square(2),
            .cross_out = linear(block + "cross.out_proj.weight", block + "cross.out_proj.bias", hidden),
            .self_in = linear(block + "selfa.in_proj_weight", block + "selfa.in_proj_bias", hidden),
            .self_out = linear(block + "selfa.out_proj.weight", block + "selfa.out_proj.bias", hidden),
            .ffn_in = linear(block + "ffn.0.weight", block + "ffn.0.bias", hidden),
            .ffn_out = linear(block + "ffn.2.weight", block + "ffn.2.bias", shape().ffn)};
}

size_t Pooler::Network::scratch_bytes() const {
    size_t bytes = past_.scratch_bytes() + past_attention_.scratch_bytes();
    for (const Panels* panels :
         {&queries_, &normed_, &wide_, &attended_, &scores_, &absorbed_, &context_, &inner_}) {
        bytes += panels->bytes();
    }
    return bytes;
}

PoolResult Pooler::Network::pool(size_t past_length, const PastRows& rows) {
    if (past_length == 0) {
        fail(ErrorCode::invalid_argument, "pooling an empty past: leave the soft prompt out instead");
    }
    past_.open(past_length, rows);
    const std::vector<float>& query = tensor("query");
    for (size_t i = 0; i < query.size(); ++i) {
        const size_t token = i / shape().hidden;
        queries_[token / lane_count][i % shape().hidden].set(token % lane_count, query[i]);
    }
    PoolResult result;
    result.mass.resize(past_length);
    for (const Layer& layer : layers_) {
        cross_attention(layer, result.mass);
        self_attention(layer);
        feed_forward(layer);
    }
    result.soft_prompt = soft_prompt();
    return result;
}

void Pooler::Network::cross_attention(const Layer& layer, std::span<float> mass) {
    const size_t hidden = shape().hidden;
    const size_t width = hidden / shape().heads;
    layer_norm(layer.lnq1, queries_, normed_);
    dense(*team_, layer.cross_q, normed_, attended_);

    const size_t key_blocks = (hidden + task_rows - 1) / task_rows;
    team_->run(shape().heads * key_blocks, [&](size_t task) {
        const size_t head = task / key_blocks;
        const size_t first = task % key_blocks * task_rows;
        multiply({.a = {.data = layer.cross_k + (head * hidden + first) * width, .row_stride = width},
                  .rows = std::min(task_rows, hidden - first),
                  .depth = width,
                  .panels = panels_,
                  .b = attended_[0] + head * width,
                  .b_stride = attended_.features,
                  .c = absorbed_[head * panels_] + first,
                  .c_stride = absorbed_.features});
    });

    past_attention_.run(*team_, past_, absorbed_, context_, mass);

    const size_t value_blocks = (width + task_rows - 1) / task_rows;
    team_->run(shape().heads * value_blocks, [&](size_t task) {
        const size_t head = task / value_blocks;
        const size_t first = task % value_blocks * task_rows;
        const size_t row = head * width + first;
        const size_t rows = std::min(task_rows, width - first);
        multiply({.a = {.data = layer.cross_v.weight + row * hidden, .row_stride = hidden},
                  .rows = rows,
                  .depth = hidden,
                  .panels = panels_,
                  .b = context_[head * panels_],
                  .b_stride = context_.features,
                  .c = attended_[0] + row,
                  .c_stride = attended_.features});
        for (size_t panel = 0; panel < panels_; ++panel) {
            for (size_t i = row; i < row + rows; ++i) {
                attended_[panel][i] = attended_[panel][i] + layer.cross_v.bias[i];
            }
        }
    });
    dense(*team_, layer.cross_out, attended_, queries_, true);
}

void Pooler::Network::self_attention(const Layer& layer) {
    layer_norm(layer.lnq2, queries_, normed_);
    dense(*team_, layer.self_in, normed_, wide_);
    pooler::self_attention(*team_, wide_, shape().n_sp, shape().heads, scores_, attended_);
    dense(*team_, layer.self_out, attended_, queries_, true);
}

void Pooler::Network::feed_forward(const Layer& layer) {
    layer_norm(layer.lnq3, queries_, normed_);
    dense(*team_, layer.ffn_in, normed_, inner_);
    gelu(*team_, inner_);
    dense(*team_, layer.ffn_out, inner_, queries_, true);
}

std::vector<float> Pooler::Network::soft_prompt() {
    layer_norm(ln_out_, queries_, normed_);
    std::vector<float> result(size_t{shape().n_sp} * shape().hidden);
    for (size_t token = 0; token < shape().n_sp; ++token) {
        const Lanes* const features = normed_[token / lane_count];
        const size_t lane = token % lane_count;
        double square = 0.0;
        for (size_t i = 0; i < shape().hidden; ++i) {
            square += static_cast<double>(features[i][lane]) * static_cast<double>(features[i][lane]);
        }
        const double scale = std::abs(static_cast<double>(weights_.out_scale)) / std::sqrt(square);
        if (!std::isfinite(scale)) {
            fail(ErrorCode::bad_file,
                 "soft-prompt vector {} has norm {} before scaling: the pooler's weights leave float32's "
                 "range; "
                 "use another bundle",
                 token, std::sqrt(square));
        }
        for (size_t i = 0; i < shape().hidden; ++i) {
            result[token * shape().hidden + i] =
                static_cast<float>(scale * static_cast<double>(features[i][lane]));
        }
    }
    return result;
}

Pooler::Pooler(PoolerWeights weights, int threads) {
    check(weights, "pooler");
    network_ = std::make_unique<Network>(std::move(weights), threads);
}
Pooler::~Pooler() = default;
Pooler::Pooler(Pooler&&) noexcept = default;
Pooler& Pooler::operator=(Pooler&&) noexcept = default;

const PoolerShape& Pooler::shape() const { return network_->shape(); }
size_t Pooler::scratch_bytes() const { return network_->scratch_bytes(); }
void Pooler::set_threads(int threads) { network_->set_threads(threads); }
PoolResult Pooler::pool(size_t past_length, const PastRows& rows) {
    return network_->pool(past_length, rows);
}

} // namespace spool
