#include "pooler/past.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/error.h"
#include "pooler/lanes.h"

namespace spool::pooler {
namespace {

constexpr size_t staging_rows = 16;
constexpr double epsilon = 1e-5; // PyTorch's LayerNorm

/// The sum of term(value), in lane_count running sums that are joined at the end.
template <typename Term>
double lane_sum(std::span<const float> values, Term term) {
    std::array<float, lane_count> sums{};
    const size_t full = values.size() / lane_count * lane_count;
    for (size_t i = 0; i < full; i += lane_count) {
        for (size_t lane = 0; lane < lane_count; ++lane) {
            sums[lane] += term(values[i + lane]);
        }
    }
    double total = 0.0;
    for (const float sum : sums) {
        total += static_cast<double>(sum);
    }
    for (size_t i = full; i < values.size(); ++i) {
        total += static_cast<double>(term(values[i]));
    }
    return total;
}

/// to = (from - mean) / sqrt(variance + epsilon); false if `from` holds a value that is not finite.
bool normalise(std::span<const float> from, float* to) {
    const auto size = static_cast<double>(from.size());
    const auto mean = static_cast<float>(lane_sum(from, [](float x) { return x; }) / size);
    const double variance = lane_sum(from, [mean](float x) { return (x - mean) * (x - mean); }) / size;
    const auto scale = static_cast<float>(1.0 / std::sqrt(variance + epsilon));
    for (size_t i = 0; i < from.size(); ++i) {
        to[i] = (from[i] - mean) * scale;
    }
    return std::isfinite(variance);
}

} // namespace

PastTile make_tile(size_t hidden) {
    // An odd number of cache lines from row to row: a column of the tile then spreads over all cache sets.
    const size_t lines = (hidden + lane_count - 1) / lane_count | 1U;
    PastTile tile;
    tile.stride = lines * lane_count;
    tile.rows.resize(tile_tokens * tile.stride);
    return tile;
}

Past::Past(size_t hidden) : hidden_(hidden), position_(hidden), staging_(staging_rows * hidden) {}

void Past::open(size_t length, const PastRows& rows) {
    length_ = length;
    rows_ = &rows;
}

void Past::read(size_t index, PastTile& tile) {
    tile.first = index * tile_tokens;
    tile.count = std::min(tile_tokens, length_ - tile.first);
    position_.seek(tile.first);
    for (size_t begin = 0; begin < tile.count; begin += staging_rows) {
        const size_t count = std::min(staging_rows, tile.count - begin);
        (*rows_)(tile.first + begin, count, staging_.data());
        position_.add_next(staging_.data(), count);
        for (size_t i = 0; i < count; ++i) {
            const float* row = staging_.data() + i * hidden_;
            if (!normalise({row, hidden_}, tile.rows.data() + (begin + i) * tile.stride)) {
                fail(ErrorCode::invalid_argument,
                     "the embedding of kept token {} holds a value that is not finite or too large for "
                     "float32; "
                     "check the model's token embedding",
                     tile.first + begin + i);
            }
        }
    }
}

} // namespace spool::pooler
