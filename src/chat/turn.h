// One turn of a conversation, and the rules for accepting it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "generation/stop_rules.h"

namespace spool {

struct TurnRules {
    double max_seconds = 240;
    size_t max_tokens = 2000;
    size_t repeat_limit = 6; ///< identical tokens in a row end a turn; 0: no limit
    uint32_t retries = 3;    ///< how often a reply that cannot stand is drawn again
    std::vector<std::string> stop;
};

/// Why a reply cannot stand.
enum class TurnFault {
    none,
    empty,               ///< nothing after the thinking
    unfinished_thinking, ///< the thinking was never closed
    timed_out,
    degenerate ///< the same token again and again
};

/// "none", "empty", ... as printed in `--json`.
std::string_view to_string(TurnFault fault);
/// A sentence for people.
std::string_view explain(TurnFault fault);

struct Turn {
    std::string user;
    std::string thinking;
    std::string answer;
    StopReason reason = StopReason::end_token;
    TurnFault fault = TurnFault::none; ///< other than none: no attempt could stand, and nothing was kept
    uint32_t attempts = 0;
    size_t tokens = 0; ///< of the last attempt
    double seconds = 0;
};

/// What happens while a turn is made; all may be empty.
struct TurnEvents {
    std::function<void(std::string_view)> on_thinking;
    std::function<void(std::string_view)> on_answer;
    /// The attempt just made cannot stand; what was shown of it is void.
    std::function<void(TurnFault fault, uint32_t attempt)> on_retry;
    std::function<void()> on_token;
    /// Set from elsewhere (Ctrl-C): the turn ends, and what there is of it is kept.
    const std::atomic<bool>* interrupted = nullptr;
};

} // namespace spool
