#include "chat/draw.h"

#include <utility>

#include "generation/generate.h"
#include "memory/schedule.h"

namespace spool {

namespace {

/// One chooser for the thinking, another for the answer.
class TwoChoosers final : public Chooser {
  public:
    TwoChoosers(Chooser& thinking, Chooser* answer, const ReasoningStream& stream)
        : thinking_(thinking), answer_(answer), stream_(stream) {}

    Token sample(std::span<const float> logits) override {
        return answer_ != nullptr && !stream_.thinking() ? answer_->sample(logits) : thinking_.sample(logits);
    }
    void restart(std::span<const Token> history, uint64_t position) override {
        thinking_.restart(history, position);
        if (answer_ != nullptr) {
            answer_->restart(history, position);
        }
    }

  private:
    Chooser& thinking_;
    Chooser* answer_;
    const ReasoningStream& stream_;
};

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

TurnFault judge(const Turn& turn, bool thinks) {
    if (turn.reason == StopReason::interrupted) {
        return is_blank(turn.thinking) && is_blank(turn.answer) ? TurnFault::empty : TurnFault::none;
    }
    if (turn.reason == StopReason::repetition) {
        return TurnFault::degenerate;
    }
    if (turn.reason == StopReason::time_limit) {
        return TurnFault::timed_out;
    }
    if (is_blank(turn.answer)) {
        return thinks ? TurnFault::unfinished_thinking : TurnFault::empty;
    }
    return TurnFault::none;
}

Turn attempt(const DrawParts& parts, std::span<const Token> prompt, const TurnRules& rules, uint32_t number,
             const TurnEvents& events) {
    Session& session = parts.session;
    const Stopwatch watch;
    session.read(prompt);

    Turn turn;
    ReasoningStream stream(parts.reasoning);
    const auto take = [&](const ReasoningStream::Piece& piece) {
        turn.thinking += piece.thinking;
        turn.answer += piece.answer;
        if (events.on_thinking && !piece.thinking.empty()) {
            events.on_thinking(piece.thinking);
        }
        if (events.on_answer && !piece.answer.empty()) {
            events.on_answer(piece.answer);
        }
    };
    TwoChoosers chooser(parts.chooser, parts.answer_chooser, stream);
    const std::vector<Token>& tokens = session.transcript().tokens;
    chooser.restart(tokens, tokens.size() + (uint64_t{number} << 32U));

    GenerationOptions options;
    options.max_tokens = rules.max_tokens;
    options.max_seconds = rules.max_seconds;
    options.repeat_limit = rules.repeat_limit;
    options.stop = rules.stop;
    // The thinking tags may be control tokens.
    options.show_special = parts.reasoning.thinks();
    options.interrupted = events.interrupted;
    options.on_text = [&](std::string_view text) {
        take(stream.push(text));
        return true;
    };
    options.on_token = events.on_token;
    const Generation generation = generate(session, chooser, parts.tokenizer, options, nullptr);
    take(stream.finish());
    turn.reason = generation.reason;
    turn.tokens = generation.tokens.size();
    turn.seconds = watch.seconds();
    turn.fault = judge(turn, stream.thinking());
    return turn;
}

} // namespace

Snapshot take_snapshot(const Session& session) {
    if (session.transcript().tokens.empty()) {
        return {};
    }
    const auto logits = session.logits();
    return {session.transcript(), session.save_cache(), {logits.begin(), logits.end()}};
}

void restore_snapshot(Session& session, const Snapshot& snapshot) {
    if (snapshot.transcript.tokens.empty()) {
        session.clear();
    } else {
        session.restore(Transcript(snapshot.transcript), snapshot.cache, snapshot.logits);
    }
}

Turn draw_turn(const DrawParts& parts, std::span<const Token> prompt, const TurnRules& rules,
               const Snapshot& before, uint32_t first_attempt, const TurnEvents& events) {
    double seconds = 0;
    for (uint32_t made = 1;; ++made) {
        Turn turn = attempt(parts, prompt, rules, first_attempt + made - 1, events);
        turn.attempts = made;
        turn.seconds = seconds += turn.seconds;
        if (turn.fault == TurnFault::none) {
            return turn;
        }
        restore_snapshot(parts.session, before);
        if (made > rules.retries || turn.reason == StopReason::interrupted) {
            return turn;
        }
        if (events.on_retry) {
            events.on_retry(turn.fault, made);
        }
    }
}

} // namespace spool
