#include "train/linear.h"

namespace spool::train {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Packed = c10::intrusive_ptr<PackedWeight>;

bool is_trained(const Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

/// Everything is multiplied in the type `products` and comes out in float32.
/// Forward: y = x W^T + b + s (x A^T) B^T. Backward, with g = dL/dy:
///   dx = g W + (s g B) A      dA = (s g B)^T x      dB = s g^T (x A^T)      dW = g^T x      db = sum g
class LinearFunction : public torch::autograd::Function<LinearFunction> {
  public:
    using Optional = std::optional<Tensor>;

    static Tensor forward(AutogradContext* context, const Tensor& x, const Optional& given_weight,
                          const Optional& given_bias, const Optional& given_a, const Optional& given_b,
                          double scale, const Packed& packed, at::ScalarType products) {
        const Tensor weight = given_weight.value_or(Tensor());
        const Tensor bias = given_bias.value_or(Tensor());
        const Tensor a = given_a.value_or(Tensor());
        const Tensor b = given_b.value_or(Tensor());
        const Tensor w = (packed ? unpack(*packed) : weight).to(products);
        const Tensor rows = x.reshape({-1, x.size(-1)}).to(products);
        Tensor y = bias.defined() ? at::addmm(bias.to(products), rows, w.t()) : at::mm(rows, w.t());
        Tensor low;
        if (a.defined()) {
            low = at::mm(rows, a.to(products).t());
            y.addmm_(low, b.to(products).t(), 1, scale);
        }
        const bool needs_rows = is_trained(weight) || is_trained(a);
        context->save_for_backward({needs_rows ? rows : Tensor(), weight, a, b, low});
        auto& data = context->saved_data;
        data["packed"] = packed ? at::IValue::make_capsule(packed) : at::IValue();
        data["scale"] = scale;
        data["sizes"] = x.sizes().vec();
        data["x"] = is_trained(x);
        data["weight"] = is_trained(weight);
        data["bias"] = is_trained(bias);
        data["products"] = static_cast<int64_t>(products);
        auto sizes = x.sizes().vec();
        sizes.back() = y.size(1);
        return y.view(sizes).to(at::kFloat);
    }

    static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
        const auto saved = context->get_saved_variables();
        const Tensor& rows = saved[0];
        auto& data = context->saved_data;
        const auto products = static_cast<at::ScalarType>(data["products"].toInt());
        const Tensor a = saved[2].defined() ? saved[2].to(products) : Tensor();
        const double scale = data["scale"].toDouble();
        const Tensor g = gradients[0].reshape({-1, gradients[0].size(-1)}).to(products);

        tensor_list result(8);
        Tensor low_gradient;
        if (a.defined()) {
            low_gradient = at::mm(g, saved[3].to(products)).mul_(scale);
            result[3] = at::mm(low_gradient.t(), rows).to(at::kFloat);
            result[4] = at::mm(g.t(), saved[4]).to(at::kFloat).mul_(scale);
        }
        if (data["x"].toBool()) {
            const bool is_packed = !data["packed"].isNone();
            const Tensor w =
                is_packed
                    ? unpack(*c10::static_intrusive_pointer_cast<PackedWeight>(data["packed"].toCapsule()))
                    : saved[1];
            Tensor dx = at::mm(g, w.to(products));
            if (a.defined()) {
                dx.addmm_(low_gradient, a);
            }
            result[0] = dx.view(data["sizes"].toIntVector()).to(at::kFloat);
        }
        if (data["weight"].toBool()) {
            result[1] = at::mm(g.t(), rows).to(at::kFloat);
        }
        if (data["bias"].toBool()) {
            result[2] = g.to(at::kFloat).sum(0);
        }
        return result;
    }
};

} // namespace

Tensor linear(const Tensor& x, const Linear& layer) {
    const bool adapted = layer.adapter.has_value();
    return LinearFunction::apply(x, present(layer.weight), present(layer.bias),
                                 adapted ? present(layer.adapter->a) : std::nullopt,
                                 adapted ? present(layer.adapter->b) : std::nullopt,
                                 adapted ? layer.adapter->scale : 0.0, layer.packed, layer.products);
}

} // namespace spool::train
