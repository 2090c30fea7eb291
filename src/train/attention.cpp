#include "train/attention.h"

namespace spool::train {

namespace {

Tensor attend_causal(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionPart& part) {
    const int64_t repeat = q.size(1) / k.size(1);
    const auto heads_first = [&](const Tensor& x, int64_t times) { // [groups, heads, queries, d]
        const Tensor rows = x.narrow(0, part.first, part.groups * part.queries)
                                .unflatten(0, {part.groups, part.queries})
                                .transpose(1, 2);
        return times == 1 ? rows : rows.repeat_interleave(times, 1);
    };
    return at::scaled_dot_product_attention(heads_first(q, 1), heads_first(k, repeat), heads_first(v, repeat),
                                            {}, 0.0, true)
        .transpose(1, 2)
        .flatten(0, 1);
}

/// The query heads of one KV head are laid behind one another as further queries, so K and V are not copied
/// per head.
Tensor attend_gathered(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionPart& part) {
    const int64_t kv_heads = k.size(1);
    const int64_t repeat = q.size(1) / kv_heads;
    const int64_t d = q.size(2);
    const int64_t groups = part.groups;
    const int64_t keys = part.keys.numel() / groups;

    const Tensor queries = q.narrow(0, part.first, groups * part.queries)
                               .view({groups, part.queries, kv_heads, repeat, d})
                               .permute({0, 2, 3, 1, 4})
                               .reshape({groups, kv_heads, repeat * part.queries, d});
    const auto gathered = [&](const Tensor& x) {
        return x.index_select(0, part.keys).view({groups, keys, kv_heads, d}).transpose(1, 2);
    };
    const Tensor mask = part.mask.unsqueeze(1)
                            .expand({groups, repeat, part.queries, keys})
                            .reshape({groups, 1, repeat * part.queries, keys});
    return at::scaled_dot_product_attention(queries, gathered(k), gathered(v), mask)
        .view({groups, kv_heads, repeat, part.queries, d})
        .permute({0, 3, 1, 2, 4})
        .reshape({groups * part.queries, kv_heads * repeat, d});
}

} // namespace

AttentionPlan to_device(const AttentionPlan& plan, at::Device device) {
    AttentionPlan moved = plan;
    for (AttentionPart& part : moved) {
        if (part.keys.defined()) {
            part.keys = part.keys.to(device);
            part.mask = part.mask.to(device);
        }
    }
    return moved;
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionPlan& plan) {
    std::vector<Tensor> outputs;
    for (const AttentionPart& part : plan) {
        outputs.push_back(part.keys.defined() ? attend_gathered(q, k, v, part)
                                              : attend_causal(q, k, v, part));
    }
    return outputs.size() == 1 ? outputs[0] : at::cat(outputs, 0);
}

} // namespace spool::train
