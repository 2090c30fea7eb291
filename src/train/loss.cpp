#include "train/loss.h"

namespace spool::train {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// out = a b in b's type; out and a are float32.
void multiply(Tensor& out, const Tensor& a, const Tensor& b) {
    if (b.scalar_type() == at::kFloat) {
        at::mm_out(out, a, b);
    } else {
        out.copy_(at::mm(a.to(b.scalar_type()), b));
    }
}

/// d nll / d logits = softmax - onehot;  d KL(t || s) / d logits = softmax_s - softmax_t.
class CrossEntropyFunction : public torch::autograd::Function<CrossEntropyFunction> {
  public:
    static tensor_list forward(AutogradContext* context, const Tensor& hidden, const Tensor& head,
                               const Tensor& targets, const Tensor& weights,
                               const std::optional<Tensor>& given_teacher, double kl_weight, int64_t chunk) {
        const Tensor teacher = given_teacher.value_or(Tensor());
        const int64_t rows = hidden.size(0);
        const bool trains_head = head.requires_grad();
        const bool trains_hidden = hidden.requires_grad();
        Tensor loss = at::zeros({}, hidden.options());
        Tensor nll = at::empty({rows}, hidden.options());
        const Tensor dhidden = trains_hidden ? at::empty_like(hidden) : Tensor();
        Tensor dhead = trains_head ? at::zeros_like(head) : Tensor();
        // One buffer serves all chunks: fresh pages for a hundred megabytes of logits cost as much as the
        // softmax.
        const Tensor buffer =
            at::empty({std::min(chunk, rows), head.size(0)}, hidden.options().requires_grad(false));
        for (int64_t first = 0; first < rows; first += chunk) {
            const int64_t count = std::min(chunk, rows - first);
            const Tensor h = hidden.narrow(0, first, count);
            const Tensor target = targets.narrow(0, first, count).unsqueeze(1);
            const Tensor weight = weights.narrow(0, first, count);
            Tensor log_p = buffer.narrow(0, 0, count);
            multiply(log_p, h, head.t());
            log_p.sub_(log_p.logsumexp(-1, true));
            Tensor row_loss = log_p.gather(1, target).squeeze(1).neg_();
            nll.narrow(0, first, count).copy_(row_loss);
            Tensor teacher_p;
            if (teacher.defined()) {
                Tensor log_t = at::empty_like(log_p);
                multiply(log_t, teacher.narrow(0, first, count), head.t());
                log_t = at::log_softmax(log_t, -1);
                teacher_p = log_t.exp();
                row_loss = row_loss + (teacher_p * (log_t - log_p)).sum(-1) * kl_weight;
            }
            loss.add_(at::dot(row_loss, weight));
            if (!trains_hidden && !trains_head) {
                continue;
            }
            Tensor gradient = log_p.exp_(); // of the logits
            if (teacher_p.defined()) {
                gradient.mul_(1 + kl_weight).sub_(teacher_p, kl_weight);
            }
            gradient.scatter_add_(1, target, at::full_like(target, -1, gradient.options()));
            gradient.mul_(weight.unsqueeze(1));
            if (trains_hidden) {
                Tensor part = dhidden.narrow(0, first, count);
                multiply(part, gradient, head);
            }
            if (trains_head) {
                dhead.addmm_(gradient.t(), h);
            }
        }
        context->save_for_backward({dhidden, dhead});
        context->mark_non_differentiable({nll});
        return {loss, nll};
    }

    static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
        const auto saved = context->get_saved_variables();
        const auto scaled = [&](const Tensor& t) { return t.defined() ? t * gradients[0] : Tensor(); };
        return {scaled(saved[0]), scaled(saved[1]), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
    }
};

} // namespace

TokenLosses cross_entropy(const Tensor& hidden, const Tensor& head, const Tensor& targets,
                          const Tensor& weights, const Tensor& teacher, double kl_weight, int64_t chunk) {
    const auto results =
        CrossEntropyFunction::apply(hidden, head, targets, weights, present(teacher), kl_weight, chunk);
    return {.loss = results[0], .nll = results[1]};
}

} // namespace spool::train
