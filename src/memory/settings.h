// How a session holds its past: the strategy and its sizes.
#pragma once

#include <cstdint>
#include <string_view>

#include "pooler/weights.h"

namespace spool {

enum class StrategyKind { full, window, soft_prompt, slots };

std::string_view to_string(StrategyKind kind);
/// Accepts "full", "window", "soft-prompt", "slots". Throws Error{invalid_argument}, naming all four.
StrategyKind strategy_from_string(std::string_view text);

/// All sizes in tokens.
struct MemorySettings {
    StrategyKind strategy = StrategyKind::window;
    Layout refresh = Layout::carry; ///< how the soft prompt enters the cache
    uint32_t pin = 256;             ///< MQ at most: the first tokens read, never evicted
    uint32_t window = 512;          ///< rw
    uint32_t chunk = 64;            ///< C
    uint32_t max_distant = 4096;    ///< maxD
    uint32_t max_slots = 256;       ///< `slots` only: slots kept, the newest
    uint32_t max_position = 0;   ///< positions are re-based before this one; 0: the model's trained context
    uint32_t full_length = 4096; ///< `full` only: tokens a session can hold

    bool operator==(const MemorySettings&) const = default;
};

} // namespace spool
