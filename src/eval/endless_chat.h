// `spool eval endless`: does a conversation of hundreds of turns stay as fast and as small as it began?
// Beside llama.cpp with context shift in as many cells, turn by turn in one process.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "chat/turn_format.h"
#include "context/session.h"
#include "core/json.h"
#include "core/report.h"
#include "llm/sampler.h"

namespace spool {

struct EndlessOptions {
    PoolOptions pool;
    SamplerOptions sampler;
    size_t turns = 200;
    size_t text = 160; ///< bytes of a user's text, at least
    size_t reply = 48; ///< tokens of a reply
    /// After each turn; returning false stops early, and what is there is summarised.
    std::function<bool(size_t done)> on_turn;
};

struct EndlessTurn {
    double seconds = 0;
    double peer_seconds = 0;
    size_t tokens = 0; ///< of the whole conversation so far
    size_t cells = 0;  ///< in use
    size_t rss_bytes = 0;
};

/// Throws Error{invalid_argument} for fewer than 8 turns, Error{interrupted} when stopped before that.
std::vector<EndlessTurn> run_endless_chat(const Model& model, const Bundle* bundle, const ChatTemplate& chat,
                                          const EndlessOptions& options);

/// Medians of the second quarter of the turns and of the last one, their ratio ("flat"), the ratio of the
/// peer's whole time to ours ("speed_beside_peer"), and the growth of resident memory over the last three
/// quarters.
Json summarise(const std::vector<EndlessTurn>& turns);

Report endless_report(const std::vector<EndlessTurn>& turns, const Json& settings);

} // namespace spool
