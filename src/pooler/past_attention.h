// Softmax attention over the past, tile by tile, and the mass it leaves on every token.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pooler/dense.h"
#include "pooler/past.h"
#include "pooler/team.h"
#include "pooler/weights.h"

namespace spool::pooler {

class PastAttention {
  public:
    explicit PastAttention(const PoolerShape& shape);

    /// With x_j the normalised past: context_i = sum_j p_ij x_j, where p_ij = softmax over j of query_i .
    /// x_j, and mass[j] += sum of p_ij over the queries of all heads / heads. `queries` and `context`: one
    /// panel of `hidden` features for each head and 16 queries, head by head; mass: [past.length()].
    void run(Team& team, Past& past, const Panels& queries, Panels& context, std::span<float> mass);

    size_t scratch_bytes() const;

  private:
    /// Calls work(panel, slot) on the team for every panel and every tile from `first` on, with the tile in
    /// current_, then done(tile, slot). The calling thread reads the next tile meanwhile.
    template <typename Work, typename Done>
    void for_each_tile(Team& team, Past& past, size_t first, Work work, Done done);

    Lanes* score(const Panels& queries, size_t panel, size_t slot);
    void absorb(const Panels& queries, size_t panel, size_t slot, Panels& context);
    void finish(size_t panel, Panels& context);
    void score_again(const Panels& queries, size_t panel, size_t slot);
    void add_mass(size_t slot, std::span<float> mass) const;

    size_t heads_;
    size_t queries_;
    size_t panels_;
    PastTile current_;
    PastTile next_;
    /// A slot for each tile whose probabilities are kept, and one in which all later tiles take turns.
    Panels weights_;           ///< [slots * panels] of tile_tokens: exp(score - tile_top)
    Panels tile_top_;          ///< [slots] of panels: the maximum when the slot was filled
    std::vector<Lanes> top_;   ///< [panels]: the maximum so far
    std::vector<Lanes> total_; ///< [panels]: the sum of exp(score - top) so far
    std::vector<Lanes> share_; ///< [panels]: 1 / (heads * total), 0 in lanes without a query
};

} // namespace spool::pooler
