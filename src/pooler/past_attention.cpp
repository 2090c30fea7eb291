#include "pooler/past_attention.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "pooler/multiply.h"

namespace spool::pooler {
namespace {

constexpr size_t kept_tiles = (4096 + tile_tokens - 1) / tile_tokens;

} // namespace

PastAttention::PastAttention(const PoolerShape& shape)
    : heads_(shape.heads), queries_(shape.n_sp), panels_(heads_ * panels_for(queries_)),
      current_(make_tile(shape.hidden)), next_(current_), weights_((kept_tiles + 1) * panels_, tile_tokens),
      tile_top_(kept_tiles + 1, panels_), top_(panels_), total_(panels_), share_(panels_) {}

size_t PastAttention::scratch_bytes() const {
    return 2 * current_.rows.size() * sizeof(float) + weights_.bytes() + tile_top_.bytes() +
           3 * panels_ * sizeof(Lanes);
}

void PastAttention::run(Team& team, Past& past, const Panels& queries, Panels& context,
                        std::span<float> mass) {
    const auto nothing = [](size_t, size_t) {};
    for_each_tile(
        team, past, 0, [&](size_t panel, size_t slot) { absorb(queries, panel, slot, context); }, nothing);
    team.run(panels_, [&](size_t panel) { finish(panel, context); });

    const auto tokens = [&](size_t tile) {
        const size_t first = tile * tile_tokens;
        return mass.subspan(first, std::min(tile_tokens, mass.size() - first));
    };
    team.run(std::min(past.tiles(), kept_tiles), [&](size_t tile) { add_mass(tile, tokens(tile)); });
    for_each_tile(
        team, past, kept_tiles, [&](size_t panel, size_t slot) { score_again(queries, panel, slot); },
        [&](size_t tile, size_t slot) { add_mass(slot, tokens(tile)); });
}

template <typename Work, typename Done>
void PastAttention::for_each_tile(Team& team, Past& past, size_t first, Work work, Done done) {
    if (first < past.tiles()) {
        past.read(first, current_);
    }
    for (size_t tile = first; tile < past.tiles(); ++tile) {
        const size_t slot = std::min(tile, kept_tiles);
        const auto read_next = [&] {
            if (tile + 1 < past.tiles()) {
                past.read(tile + 1, next_);
            }
        };
        team.run(panels_, [&](size_t panel) { work(panel, slot); }, read_next);
        done(tile, slot);
        std::swap(current_, next_);
    }
}

Lanes* PastAttention::score(const Panels& queries, size_t panel, size_t slot) {
    Lanes* const scores = weights_[slot * panels_ + panel];
    multiply({.a = {.data = current_.rows.data(), .row_stride = current_.stride},
              .rows = current_.count,
              .depth = queries.features,
              .b = queries[panel],
              .c = scores});
    return scores;
}

void PastAttention::absorb(const Panels& queries, size_t panel, size_t slot, Panels& context) {
    Lanes* const weights = score(queries, panel, slot);
    const bool first = current_.first == 0;
    Lanes top = first ? weights[0] : top_[panel];
    for (size_t j = 0; j < current_.count; ++j) {
        top = max(top, weights[j]);
    }
    Lanes total = Lanes::all(0.0F);
    for (size_t j = 0; j < current_.count; ++j) {
        weights[j] = exp_nonpositive(weights[j] - top);
        total = total + weights[j];
    }
    if (!first) {
        const Lanes rescale = exp_nonpositive(top_[panel] - top);
        total = total + total_[panel] * rescale;
        if (!equal(top_[panel], top)) {
            for (size_t i = 0; i < context.features; ++i) {
                context[panel][i] = context[panel][i] * rescale;
            }
        }
    }
    multiply({.a = {.data = current_.rows.data(), .row_stride = 1, .depth_stride = current_.stride},
              .rows = context.features,
              .depth = current_.count,
              .b = weights,
              .c = context[panel],
              .accumulate = !first});
    top_[panel] = top;
    total_[panel] = total;
    tile_top_[slot][panel] = top;
}

void PastAttention::finish(size_t panel, Panels& context) {
    const Lanes scale = Lanes::all(1.0F) / total_[panel];
    for (size_t i = 0; i < context.features; ++i) {
        context[panel][i] = context[panel][i] * scale;
    }
    share_[panel] = scale * (1.0F / static_cast<float>(heads_));
    const size_t first_query = panel % panels_for(queries_) * lane_count;
    for (size_t lane = 0; lane < lane_count; ++lane) {
        if (first_query + lane >= queries_) {
            share_[panel].set(lane, 0.0F);
        }
    }
}

void PastAttention::score_again(const Panels& queries, size_t panel, size_t slot) {
    Lanes* const weights = score(queries, panel, slot);
    for (size_t j = 0; j < current_.count; ++j) {
        weights[j] = exp_nonpositive(weights[j] - top_[panel]);
    }
    tile_top_[slot][panel] = top_[panel];
}

void PastAttention::add_mass(size_t slot, std::span<float> mass) const {
    std::array<Lanes, tile_tokens> tokens{};
    for (size_t panel = 0; panel < panels_; ++panel) {
        const Lanes* const weights = weights_[slot * panels_ + panel];
        const Lanes scale = exp_nonpositive(tile_top_[slot][panel] - top_[panel]) * share_[panel];
        for (size_t j = 0; j < mass.size(); ++j) {
            tokens[j] = tokens[j] + weights[j] * scale;
        }
    }
    for (size_t j = 0; j < mass.size(); ++j) {
        mass[j] += sum(tokens[j]);
    }
}

} // namespace spool::pooler
