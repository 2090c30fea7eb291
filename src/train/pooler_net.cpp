#include "train/pooler_net.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace spool::train {

namespace {

constexpr double norm_eps = 1e-5;

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return at::layer_norm(x, {x.size(-1)}, weight, bias, norm_eps);
}

/// What a fresh tensor of that name holds: gains 1, biases 0, matrices uniform.
Tensor initial(const std::string& name, const std::vector<int64_t>& shape, Random& random) {
    Tensor tensor = at::zeros(shape, at::kFloat);
    const std::span values(tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel()));
    if (name == "query") {
        for (float& value : values) {
            value = static_cast<float>(random.normal() * 0.02);
        }
    } else if (shape.size() == 2) {
        // Xavier for the attention projections, 1/sqrt(in) for the others, as PyTorch does.
        const bool packed = name.ends_with("in_proj_weight");
        const double bound = packed ? std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]))
                                    : 1.0 / std::sqrt(static_cast<double>(shape[1]));
        for (float& value : values) {
            value = static_cast<float>((2 * random.uniform() - 1) * bound);
        }
    } else if (name.ends_with(".weight")) {
        tensor.fill_(1);
    }
    return tensor;
}

} // namespace

Tensor position_encoding(int64_t length, int64_t width, const at::TensorOptions& options) {
    const Tensor positions = at::arange(length, options.dtype(at::kDouble)).unsqueeze(1);
    const Tensor pairs = at::arange(0, width, 2, options.dtype(at::kDouble));
    const Tensor angles = positions * at::exp(pairs * (-std::log(10000.0) / static_cast<double>(width)));
    return at::stack({angles.sin(), angles.cos()}, -1).flatten(1).narrow(1, 0, width).to(options.dtype());
}

PoolerNet::PoolerNet(const PoolerShape& shape, double out_scale, uint64_t seed, at::Device device)
    : shape_(shape) {
    Random random(seed);
    for (const auto& [name, sizes] : pooler_tensors(shape)) {
        parameters_[name] = initial(name, sizes, random).to(device).requires_grad_();
    }
    parameters_["out_scale"] = at::full({}, out_scale, at::kFloat).to(device).requires_grad_();
}

PoolerNet::PoolerNet(const PoolerWeights& weights, at::Device device) : shape_(weights.shape) {
    for (const auto& [name, sizes] : pooler_tensors(shape_)) {
        const std::vector<float>& values = weights.tensors.at(name);
        Tensor tensor = at::empty(sizes, at::kFloat);
        std::ranges::copy(values, tensor.mutable_data_ptr<float>());
        parameters_[name] = tensor.to(device).requires_grad_();
    }
    parameters_["out_scale"] =
        at::full({}, double{weights.out_scale}, at::kFloat).to(device).requires_grad_();
}

PoolerWeights PoolerNet::weights() const {
    PoolerWeights result;
    result.shape = shape_;
    for (const auto& [name, tensor] : parameters_) {
        const Tensor host = tensor.detach().to(at::kCPU).contiguous();
        if (name == "out_scale") {
            result.out_scale = host.item<float>();
        } else {
            const auto* data = host.const_data_ptr<float>();
            result.tensors[name] = std::vector<float>(data, data + host.numel());
        }
    }
    return result;
}

Tensor PoolerNet::cross(const std::string& name, const Tensor& query, const Tensor& normalised,
                        const Tensor& hidden, Tensor& mass) const {
    const int64_t width = shape_.hidden;
    const int64_t heads = shape_.heads;
    const int64_t d = width / heads;
    const int64_t pools = query.size(0);
    const int64_t n = query.size(1);
    const auto projections = at(name + ".cross.in_proj_weight").chunk(3);
    const auto biases = at(name + ".cross.in_proj_bias").chunk(3);
    const Tensor& gain = at(name + ".lnk.weight");
    const Tensor& shift = at(name + ".lnk.bias");

    // [P, n, H] -> per head [heads, P n, d] -> through Wk, scaled by lnk's gain -> [P, heads n, H]. What is
    // the same for all tokens (lnk's bias, the key bias) cancels in the softmax.
    const Tensor q = at::linear(query, projections[0], biases[0]).view({pools * n, heads, d}).transpose(0, 1);
    const Tensor taken = at::bmm(q, projections[1].view({heads, d, width})).mul(gain);
    const Tensor rows =
        taken.view({heads, pools, n, width}).transpose(0, 1).reshape({pools, heads * n, width});

    const bool shared = normalised.size(0) == 1;
    const int64_t length = normalised.size(1);
    const Tensor past = normalised.transpose(1, 2); // [P or 1, H, L]
    const Tensor scores = shared ? at::mm(rows.view({-1, width}), past[0]).view({pools, heads * n, length})
                                 : at::bmm(rows, past);
    const Tensor weights =
        at::softmax((scores * (1.0 / std::sqrt(static_cast<double>(d)))).masked_fill(hidden, -INFINITY), -1);
    mass.add_(weights.detach().sum(1), 1.0 / static_cast<double>(heads));

    const Tensor sums = shared
                            ? at::mm(weights.view({-1, length}), normalised[0]).view({pools, heads, n, width})
                            : at::bmm(weights, normalised).view({pools, heads, n, width});
    const Tensor values = (sums * gain + shift).transpose(0, 1).reshape({heads, pools * n, width});
    const Tensor merged =
        at::bmm(values, projections[2].view({heads, d, width}).transpose(1, 2)) // [heads, P n, d]
            .transpose(0, 1)
            .reshape({pools, n, width}) +
        biases[2];
    return at::linear(merged, at(name + ".cross.out_proj.weight"), at(name + ".cross.out_proj.bias"));
}

Tensor PoolerNet::self(const std::string& name, const Tensor& query) const {
    const int64_t heads = shape_.heads;
    const auto qkv =
        at::linear(query, at(name + ".selfa.in_proj_weight"), at(name + ".selfa.in_proj_bias")).chunk(3, -1);
    const auto split = [&](const Tensor& x) { return x.unflatten(-1, {heads, -1}).transpose(1, 2); };
    const Tensor y = at::scaled_dot_product_attention(split(qkv[0]), split(qkv[1]), split(qkv[2]));
    return at::linear(y.transpose(1, 2).flatten(-2), at(name + ".selfa.out_proj.weight"),
                      at(name + ".selfa.out_proj.bias"));
}

Pooled PoolerNet::forward(const Tensor& past, const Tensor& lengths) const {
    const int64_t pools = lengths.size(0);
    const int64_t length = past.size(1);
    const Tensor placed = past + position_encoding(length, past.size(2), past.options());
    const Tensor normalised = at::layer_norm(placed, {placed.size(-1)}, {}, {}, norm_eps);
    const Tensor hidden = (at::arange(length, lengths.options()).unsqueeze(0) >= lengths.unsqueeze(1))
                              .unsqueeze(1); // [P, 1, L]

    Pooled result;
    result.mass = at::zeros({pools, length}, past.options());
    Tensor q = at("query").unsqueeze(0).expand({pools, -1, -1});
    for (uint32_t layer = 0; layer < shape_.layers; ++layer) {
        const std::string name = "blocks." + std::to_string(layer);
        const auto normed = [&](const char* which) {
            return layer_norm(q, at(name + "." + which + ".weight"), at(name + "." + which + ".bias"));
        };
        q = q + cross(name, normed("lnq1"), normalised, hidden, result.mass);
        q = q + self(name, normed("lnq2"));
        const Tensor inner =
            at::gelu(at::linear(normed("lnq3"), at(name + ".ffn.0.weight"), at(name + ".ffn.0.bias")));
        q = q + at::linear(inner, at(name + ".ffn.2.weight"), at(name + ".ffn.2.bias"));
    }
    const Tensor out = layer_norm(q, at("ln_out.weight"), at("ln_out.bias"));
    result.soft_prompt = out / out.norm(2, -1, true) * at("out_scale").abs();
    return result;
}

} // namespace spool::train
