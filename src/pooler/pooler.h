// AttnPoolSP: compresses the kept tokens into n_sp soft-prompt vectors (design part 3), all in float32.
//
// The absorbed form. Cross-attention never projects the past. With x_j the normalised past token j (shared by
// all layers), g and b the gain and bias of lnk, d = H / heads, per head h:
//     score_ij = (q_i W_k,h) . (g * x_j + b) / sqrt(d) + q_i . k_bias_h / sqrt(d)
// The terms in b and k_bias do not depend on j, so softmax over j cancels them exactly and they are left out;
//     score_ij = qk_i . x_j,   qk_i = g * (q_i W_k,h) / sqrt(d)
//     out_i    = (W_v,h diag(g)) (sum_j p_ij x_j) + (W_v,h b + v_bias_h)          since sum_j p_ij = 1
// g and b are folded into the weights once, when the pooler is made.
//
// Memory. The past is read in tiles of 48 tokens and softmax runs online (running maximum and sum), so the
// scratch memory is fixed when the pooler is made. Mass needs every probability once its softmax is complete:
// the unscaled ones of a layer's first 4,096 tokens are kept (n_sp * heads * 16 KiB, 4 MiB at the reference
// shape) and those of later tokens are computed a second time. Nothing is kept between calls.
//
// Cost at H=1536 and 4,096 tokens: 19.3 GFLOP over the past and 4.8 GFLOP for the projections of the queries.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "pooler/weights.h"

namespace spool {

/// Fills `out` [count, hidden] float32 with the token-embedding rows of kept tokens [first, first + count).
/// Called on the thread that called pool(), once per layer for every token, in order and at most 16 tokens at
/// a time; the tokens after the first 4,096 twice per layer.
using PastRows = std::function<void(size_t first, size_t count, float* out)>;

struct PoolResult {
    std::vector<float> soft_prompt; ///< [n_sp, hidden], each vector of length |out_scale|
    /// [past]: the attention each kept token received, summed over layers and queries, averaged over heads.
    /// Its sum is layers * n_sp.
    std::vector<float> mass;
};

/// Not thread-safe: one per thread. The result does not depend on the number of threads.
class Pooler {
  public:
    /// Takes the weights over (no second copy is kept). Throws Error{bad_file} as check() does.
    explicit Pooler(PoolerWeights weights, int threads = 1);
    ~Pooler();
    Pooler(Pooler&&) noexcept;
    Pooler& operator=(Pooler&&) noexcept;

    const PoolerShape& shape() const;
    /// Bytes held besides the weights, from construction on, whatever the past's length.
    size_t scratch_bytes() const;
    /// Threads used by pool(), the calling one included; they sleep between calls.
    void set_threads(int threads);

    /// Throws Error{invalid_argument} if `past_length` is 0 (leave the soft prompt out instead) or a row
    /// holds a value that is not finite, Error{bad_file} if the weights drive the result out of float32's
    /// range; passes on what `rows` throws. The pooler stays usable.
    PoolResult pool(size_t past_length, const PastRows& rows);

  private:
    class Network;
    std::unique_ptr<Network> network_;
};

} // namespace spool
