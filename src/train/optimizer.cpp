#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace spool::train {

namespace {

constexpr int64_t block = 256;
constexpr int64_t least_eight_bit = 4096;

/// The dynamic tree type of arXiv:2110.02861: the leading zeros are a decimal exponent, the bits after them a
/// fraction. Sorted; 256 values with zero and one.
Tensor dynamic_table(bool with_sign) {
    std::vector<float> values;
    constexpr int exponents = 7;
    for (int i = 0; i < exponents; ++i) {
        const int fractions = with_sign ? 1 << i : 1 << (i + 1);
        for (int j = 0; j < fractions; ++j) {
            const double low = 0.1 + 0.9 * j / fractions;
            const double high = 0.1 + 0.9 * (j + 1) / fractions;
            const double value = std::pow(10.0, i - exponents + 1) * (low + high) / 2;
            values.push_back(static_cast<float>(value));
            if (with_sign) {
                values.push_back(static_cast<float>(-value));
            }
        }
    }
    values.push_back(0);
    values.push_back(1);
    std::ranges::sort(values);
    return at::tensor(at::ArrayRef<float>(values));
}

Tensor blocks_of(const Tensor& values) {
    const int64_t padding = (block - values.numel() % block) % block;
    return at::constant_pad_nd(values.flatten(), {0, padding}).view({-1, block});
}

} // namespace

DynamicCodes quantize_dynamic(const Tensor& values, bool with_sign) {
    const Tensor table = dynamic_table(with_sign).to(values.device());
    const Tensor blocks = blocks_of(values);
    const Tensor scales = blocks.abs().amax(1);
    const Tensor midpoints = (table.slice(0, 1) + table.slice(0, 0, table.numel() - 1)).div_(2);
    const Tensor codes =
        at::bucketize(blocks / scales.clamp_min(1e-30).unsqueeze(1), midpoints).to(at::kByte);
    return {.codes = codes.flatten().narrow(0, 0, values.numel()).view(values.sizes()).contiguous(),
            .scales = scales};
}

Tensor dequantize_dynamic(const Tensor& codes, const Tensor& scales, bool with_sign) {
    const Tensor table = dynamic_table(with_sign).to(codes.device());
    const Tensor values = table.index_select(0, codes.flatten().to(at::kInt));
    return (blocks_of(values) * scales.unsqueeze(1))
        .flatten()
        .narrow(0, 0, codes.numel())
        .view(codes.sizes());
}

Adam::Adam(std::vector<ParameterGroup> groups, const AdamOptions& options) : options_(options) {
    for (auto& group : groups) {
        for (auto& [name, parameter] : group.parameters) {
            Slot slot{.name = name, .parameter = parameter, .lr = group.lr};
            slot.steps = at::zeros({}, parameter.options().requires_grad(false));
            slot.m = at::zeros_like(parameter.detach());
            slot.v = at::zeros_like(parameter.detach());
            if (options.eight_bit && parameter.numel() >= least_eight_bit) {
                const auto m = quantize_dynamic(slot.m, true);
                const auto v = quantize_dynamic(slot.v, false);
                slot.m = m.codes;
                slot.m_scale = m.scales;
                slot.v = v.codes;
                slot.v_scale = v.scales;
            }
            slots_.push_back(std::move(slot));
        }
    }
}

double Adam::clip(double limit) {
    std::vector<Tensor> norms;
    for (const Slot& slot : slots_) {
        if (slot.parameter.grad().defined()) {
            norms.push_back(slot.parameter.grad().norm().to(at::kDouble));
        }
    }
    if (norms.empty()) {
        return 0;
    }
    const auto norm = at::stack(norms).norm().item<double>();
    if (limit > 0 && norm > limit) {
        for (const Slot& slot : slots_) {
            if (slot.parameter.grad().defined()) {
                slot.parameter.grad().mul_(limit / norm);
            }
        }
    }
    return norm;
}

void Adam::step_float(const std::vector<Slot*>& slots, double factor) const {
    std::vector<Tensor> parameters;
    std::vector<Tensor> gradients;
    std::vector<Tensor> m;
    std::vector<Tensor> v;
    std::vector<Tensor> steps;
    for (Slot* slot : slots) {
        parameters.push_back(slot->parameter);
        gradients.push_back(slot->parameter.grad());
        m.push_back(slot->m);
        v.push_back(slot->v);
        slot->steps.add_(1);
        steps.push_back(slot->steps);
    }
    at::_fused_adamw_(parameters, gradients, m, v, {}, steps, slots.front()->lr * factor, options_.beta1,
                      options_.beta2, options_.weight_decay, options_.eps, false, false);
}

void Adam::step_eight_bit(Slot& slot, double factor) const {
    const Tensor gradient = slot.parameter.grad();
    slot.steps.add_(1);
    const auto count = slot.steps.item<double>();
    Tensor m = dequantize_dynamic(slot.m, slot.m_scale, true);
    Tensor v = dequantize_dynamic(slot.v, slot.v_scale, false);
    m.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    v.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    const double rate = slot.lr * factor;
    const Tensor denominator = (v / (1 - std::pow(options_.beta2, count))).sqrt_().add_(options_.eps);
    slot.parameter.mul_(1 - rate * options_.weight_decay);
    slot.parameter.addcdiv_(m, denominator, -rate / (1 - std::pow(options_.beta1, count)));
    const auto m_codes = quantize_dynamic(m, true);
    const auto v_codes = quantize_dynamic(v, false);
    slot.m.copy_(m_codes.codes);
    slot.m_scale.copy_(m_codes.scales);
    slot.v.copy_(v_codes.codes);
    slot.v_scale.copy_(v_codes.scales);
}

void Adam::step(double factor) {
    const at::NoGradGuard no_grad;
    std::map<double, std::vector<Slot*>> by_rate;
    for (Slot& slot : slots_) {
        if (!slot.parameter.grad().defined()) {
            continue;
        }
        if (slot.m_scale.defined()) {
            step_eight_bit(slot, factor);
        } else {
            by_rate[slot.lr].push_back(&slot);
        }
    }
    for (const auto& [rate, slots] : by_rate) {
        step_float(slots, factor);
    }
    for (Slot& slot : slots_) {
        slot.parameter.mutable_grad().reset();
    }
}

std::map<std::string, Tensor> Adam::state() const {
    std::map<std::string, Tensor> state;
    for (const Slot& slot : slots_) {
        state[slot.name + "/m"] = slot.m;
        state[slot.name + "/v"] = slot.v;
        state[slot.name + "/steps"] = slot.steps;
        if (slot.m_scale.defined()) {
            state[slot.name + "/m_scale"] = slot.m_scale;
            state[slot.name + "/v_scale"] = slot.v_scale;
        }
    }
    return state;
}

// NOLINTNEXTLINE(readability-make-member-function-const): it changes what the tensors hold
void Adam::load(const std::map<std::string, Tensor>& state) {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : this->state()) {
        const auto found = state.find(name);
        if (found == state.end() || found->second.sizes() != tensor.sizes() ||
            found->second.scalar_type() != tensor.scalar_type()) {
            fail(ErrorCode::bad_file, "the optimiser's state '{}' is missing or of another shape or type",
                 name);
        }
        tensor.copy_(found->second);
    }
}

} // namespace spool::train
