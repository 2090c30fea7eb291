// A conversation in constant memory: turns, replies that are drawn again when they cannot stand, undo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "chat/draw.h"
#include "chat/turn.h"
#include "chat/turn_format.h"
#include "context/session.h"
#include "core/json.h"
#include "llm/sampler.h"

namespace spool {

struct ConversationParts {
    Session& session;
    const Tokenizer& tokenizer;
    const TurnFormat& format;
    Chooser& chooser;
    Chooser* answer_chooser = nullptr; ///< takes over behind the thinking; nullptr: no change
};

class Conversation {
  public:
    /// Turns that can be undone. Each holds a copy of the session's cells.
    static constexpr size_t most_undone = 4;

    /// All parts must outlive it.
    Conversation(const ConversationParts& parts, TurnRules rules);

    /// Reads the user's text and draws a reply, again if it cannot stand, at most rules.retries times. If
    /// none can, Turn::fault says why, and the conversation is as it was before, to the last cell. A reply
    /// that was interrupted stands with what there is of it.
    Turn say(const std::string& user, const TurnEvents& events = {});
    /// The last turn's text again, with another reply; nullopt if it cannot be undone. When no reply can
    /// stand, the old turn is gone too.
    std::optional<Turn> retry(const TurnEvents& events = {});
    /// Back to before the last turn; false if there is none, or if it is too long ago.
    bool undo();
    /// Forgets everything.
    void reset();

    const std::vector<Turn>& turns() const { return turns_; }
    /// For a session that was restored: the turns it holds.
    void resume(std::vector<Turn> turns);

    /// SHA-256 of transcript, cells by position, logits and the sampler's place: equal states go on alike.
    std::string state_hash() const;

  private:
    Turn draw(const std::string& user, uint32_t first_attempt, const TurnEvents& events);

    ConversationParts parts_;
    TurnRules rules_;
    std::vector<Turn> turns_;
    std::deque<Snapshot> before_;     ///< the last turns' starts
    std::deque<uint32_t> next_draws_; ///< of each: the number of the next reply to draw there
};

/// The shape in `spool chat --json` and in saved conversations.
Json to_json(const Turn& turn);
Turn turn_from_json(const Json& json);

} // namespace spool
