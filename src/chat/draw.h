// Drawing a reply: again if it cannot stand, and nothing is left of the attempts that could not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chat/reasoning.h"
#include "chat/turn.h"
#include "context/session.h"
#include "llm/sampler.h"

namespace spool {

/// A session's whole state, to go back to: some 10 to 30 MiB for small models, as much as its cells hold.
struct Snapshot {
    Transcript transcript;
    std::vector<std::byte> cache;
    std::vector<float> logits;
};

Snapshot take_snapshot(const Session& session);
void restore_snapshot(Session& session, const Snapshot& snapshot);

struct DrawParts {
    Session& session;
    const Tokenizer& tokenizer;
    const ReasoningFormat& reasoning; ///< the prompt ends inside the thinking of a model that thinks
    Chooser& chooser;
    Chooser* answer_chooser = nullptr; ///< takes over behind the thinking; nullptr: no change
};

/// Reads `prompt` and draws a reply to it, number `first_attempt`, again if it cannot stand, at most
/// rules.retries times. If none can, Turn::fault says why, and the session is `before`, which it must be now.
/// A reply that was interrupted stands with what there is of it.
Turn draw_turn(const DrawParts& parts, std::span<const Token> prompt, const TurnRules& rules,
               const Snapshot& before, uint32_t first_attempt, const TurnEvents& events);

} // namespace spool
