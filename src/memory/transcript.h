// What a session has read and written, and where each token of it now lives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/token.h"

namespace spool {

/// Token i of the transcript is in exactly one place: pinned (i < pinned), in the distant buffer, evicted, or
/// in the window [window_start, tokens.size()). Only pinned and window tokens, soft prompt and slots have
/// cells in the KV cache.
struct Transcript {
    std::vector<Token> tokens;     ///< everything, in order
    size_t pinned = 0;             ///< MQ
    size_t window_start = 0;       ///< w0 + MQ; equals `pinned` until the first compaction
    std::vector<uint32_t> distant; ///< kept distant tokens, as ascending indices into `tokens`
    size_t evicted = 0;            ///< tokens dropped from the distant buffer so far
    int64_t position_offset = 0;   ///< see position()
    uint32_t soft_prompt = 0;      ///< soft-prompt vectors in the cache, right before the window
    std::vector<uint32_t> slots;   ///< of each group of slots: the token that it stands before
    size_t slots_gone = 0;         ///< the first so many groups have left the cache
    uint32_t slots_in_group = 0;   ///< m

    /// Tokens after the pinned ones.
    size_t raw_length() const { return tokens.size() > pinned ? tokens.size() - pinned : 0; }
    /// Of a token in the window; the slots before it take positions too.
    Position position(size_t index) const {
        const auto before = std::ranges::upper_bound(slots, index) - slots.begin();
        return static_cast<Position>(static_cast<int64_t>(index) + position_offset +
                                     before * int64_t{slots_in_group});
    }
    size_t slot_groups() const { return slots.size() - slots_gone; }
    size_t slot_cells() const { return slot_groups() * slots_in_group; }
    /// Where the next token goes.
    Position next_position() const { return position(tokens.size()); }
    std::span<const Token> window() const { return std::span(tokens).subspan(window_start); }
};

} // namespace spool
