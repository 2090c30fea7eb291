// Attention where each stretch of rows sees only a few of the others: a plan says which, so that the cost of
// a long trace grows with its length and not with its square.
#pragma once

#include <cstdint>
#include <vector>

#include "train/torch.h"

namespace spool::train {

/// Rows [first, first + groups * queries) of a sequence, in groups; the queries of a group share the keys.
struct AttentionPart {
    int64_t first = 0;
    int64_t groups = 1;
    int64_t queries = 0;
    Tensor keys; ///< int64 [groups * k], rows of the sequence; undefined: causal within the group
    Tensor mask; ///< bool [groups, queries, k]: may this query see this key? each must see at least one
};

/// Together the parts cover every row once, in order.
using AttentionPlan = std::vector<AttentionPart>;

/// The same plan with its tensors on `device`.
AttentionPlan to_device(const AttentionPlan& plan, at::Device device);

/// q [S, heads, d], k and v [S, kv_heads, d] -> [S, heads, d]; each KV head serves heads/kv_heads query
/// heads.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionPlan& plan);

} // namespace spool::train
