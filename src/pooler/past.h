// The kept tokens as the pooler's layers see them: token embedding + position encoding, mean removed, divided
// by the standard deviation. lnk's gain and bias are left out (the layers fold them into their own weights),
// so all layers read the same rows; they are made again for each layer, a tile at a time, and never kept.
#pragma once

#include <cstddef>
#include <vector>

#include "pooler/pooler.h"
#include "pooler/position.h"

namespace spool::pooler {

/// Tokens a tile holds: at the reference width its rows fit into a second-level cache of 512 KiB.
constexpr size_t tile_tokens = 48;

struct PastTile {
    size_t first = 0;
    size_t count = 0;
    size_t stride = 0;       ///< floats between rows
    std::vector<float> rows; ///< [tile_tokens, stride]
};

PastTile make_tile(size_t hidden);

class Past {
  public:
    explicit Past(size_t hidden);

    /// Until the next call, read() serves the `length` tokens of `rows`, which must outlive the reading.
    void open(size_t length, const PastRows& rows);
    size_t length() const { return length_; }
    size_t tiles() const { return (length_ + tile_tokens - 1) / tile_tokens; }

    /// Fills `tile` with the tokens of tile number `index`. Consecutive indices are fastest.
    /// Throws Error{invalid_argument} naming the token if a row holds a value that is not finite.
    void read(size_t index, PastTile& tile);

    size_t scratch_bytes() const { return staging_.size() * sizeof(float); }

  private:
    size_t hidden_;
    PositionEncoding position_;
    size_t length_ = 0;
    const PastRows* rows_ = nullptr;
    std::vector<float> staging_; // [staging_rows, hidden]
};

} // namespace spool::pooler
