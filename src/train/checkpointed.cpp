#include "train/checkpointed.h"

namespace spool::train {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct Recomputation : torch::CustomClassHolder {
    explicit Recomputation(std::function<Tensor(const Tensor&)> f) : function(std::move(f)) {}
    std::function<Tensor(const Tensor&)> function;
};

class CheckpointFunction : public torch::autograd::Function<CheckpointFunction> {
  public:
    static Tensor forward(AutogradContext* context, const Tensor& x,
                          const c10::intrusive_ptr<Recomputation>& again) {
        context->save_for_backward({x});
        context->saved_data["again"] = at::IValue::make_capsule(again);
        return again->function(x);
    }

    static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
        const auto again =
            c10::static_intrusive_pointer_cast<Recomputation>(context->saved_data["again"].toCapsule());
        const Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
        const at::AutoGradMode recording(true);
        const Tensor y = again->function(x);
        torch::autograd::backward({y}, {gradients[0]});
        return {x.grad(), Tensor()};
    }
};

} // namespace

Tensor checkpointed(const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
    // Where the input is no part of a graph (the first block), a leaf stands in, so that the node is
    // recorded.
    const Tensor input = x.requires_grad() || !at::GradMode::is_enabled() ? x : x.detach().requires_grad_();
    return CheckpointFunction::apply(input, c10::make_intrusive<Recomputation>(function));
}

} // namespace spool::train
