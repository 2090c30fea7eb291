#include "pooler/past.h"

#include "core/error.h"
#include "pooler/lanes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace spool::pooler {
namespace {

constexpr size_t kStagingRows = 16;
constexpr double kEpsilon = 1e-5; // PyTorch's LayerNorm

/// The sum of term(value), in kLanes running sums that are joined at the end.
template <typename Term>
double lane_sum(std::span<const float> values, Term term) {
    std::array<float, kLanes> sums{};
    const size_t full = values.size() / kLanes * kLanes;
    for (size_t i = 0; i < full; i += kLanes) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
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
    const auto scale = static_cast<float>(1.0 / std::sqrt(variance + kEpsilon));
    for (size_t i = 0; i < from.size(); ++i) {
        to[i] = (from[i] - mean) * scale;
    }
    return std::isfinite(variance);
}

} // namespace

PastTile make_tile(size_t hidden) {
    // An odd number of cache lines from row to row: a column of the tile then spreads over all cache sets.
    const size_t lines = (hidden + kLanes - 1) / kLanes | 1U;
    PastTile tile;
    tile.stride = lines * kLanes;
    tile.rows.resize(kTileTokens * tile.stride);
    return tile;
}

Past::Past(size_t hidden) : hidden_(hidden), position_(hidden), staging_(kStagingRows * hidden) {}

void Past::open(size_t length, const PastRows& rows) {
    length_ = length;
    rows_ = &rows;
}

void Past::read(size_t index, PastTile& tile) {
    tile.first = index * kTileTokens;
    tile.count = std::min(kTileTokens, length_ - tile.first);
    position_.seek(tile.first);
    for (size_t begin = 0; begin < tile.count; begin += kStagingRows) {
        const size_t count = std::min(kStagingRows, tile.count - begin);
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
