#include "train/layers.h"

namespace spool::train {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// With r = rsqrt(mean(x^2) + eps): y = x r w;  dx = r (g w - x r^2 mean(g w x));  dw = sum g x r.
class RmsNormFunction : public torch::autograd::Function<RmsNormFunction> {
  public:
    static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, double eps) {
        const Tensor r = x.square().mean(-1, true).add_(eps).rsqrt_();
        context->save_for_backward({x, weight, r});
        return (x * r).mul_(weight);
    }

    static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
        const auto saved = context->get_saved_variables();
        const Tensor& x = saved[0];
        const Tensor& weight = saved[1];
        const Tensor& r = saved[2];
        const Tensor gw = gradients[0] * weight;
        const Tensor projection = (gw * x).mean(-1, true).mul_(r.square());
        Tensor dweight;
        if (weight.requires_grad()) {
            dweight = (gradients[0] * x).mul_(r).flatten(0, -2).sum(0);
        }
        return {gw.addcmul(x, projection, -1).mul_(r), dweight, Tensor()};
    }
};

class SwigluFunction : public torch::autograd::Function<SwigluFunction> {
  public:
    static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up) {
        context->save_for_backward({gate, up});
        return at::silu(gate).mul_(up);
    }

    static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
        const auto saved = context->get_saved_variables();
        const Tensor& g = gradients[0];
        return {at::silu_backward(g * saved[1], saved[0]), at::silu(saved[0]).mul_(g)};
    }
};

Tensor rotated(const Tensor& x, const Tensor& cosine, const Tensor& sine, RopePairs pairs) {
    const int64_t half = x.size(-1) / 2;
    Tensor out = at::empty(x.sizes(), x.options());
    const bool neighbours = pairs == RopePairs::neighbours;
    const auto first = [&](const Tensor& t) {
        return neighbours ? t.slice(-1, 0, at::nullopt, 2) : t.narrow(-1, 0, half);
    };
    const auto second = [&](const Tensor& t) {
        return neighbours ? t.slice(-1, 1, at::nullopt, 2) : t.narrow(-1, half, half);
    };
    Tensor out_first = first(out);
    Tensor out_second = second(out);
    at::mul_out(out_first, first(x), cosine).addcmul_(second(x), sine, -1);
    at::mul_out(out_second, second(x), cosine).addcmul_(first(x), sine);
    return out;
}

/// A rotation's transpose is the rotation by the opposite angle.
class RotateFunction : public torch::autograd::Function<RotateFunction> {
  public:
    static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cosine, const Tensor& sine,
                          int64_t pairs) {
        context->save_for_backward({cosine, sine});
        context->saved_data["pairs"] = pairs;
        return rotated(x, cosine, sine, static_cast<RopePairs>(pairs));
    }

    static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
        const auto saved = context->get_saved_variables();
        const auto pairs = static_cast<RopePairs>(context->saved_data["pairs"].toInt());
        return {rotated(gradients[0], saved[0], saved[1].neg(), pairs), Tensor(), Tensor(), Tensor()};
    }
};

} // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
    return RmsNormFunction::apply(x, weight, eps);
}

Tensor swiglu(const Tensor& gate, const Tensor& up) { return SwigluFunction::apply(gate, up); }

Tensor rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine, RopePairs pairs) {
    return RotateFunction::apply(x, cosine, sine, static_cast<int64_t>(pairs));
}

} // namespace spool::train
