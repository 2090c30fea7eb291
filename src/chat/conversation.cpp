#include "chat/conversation.h"

#include <array>
#include <utility>

#include "core/hash.h"
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

template <typename T>
void append(std::vector<std::byte>& bytes, std::span<const T> values) {
    const auto raw = std::as_bytes(values);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
}

} // namespace

Conversation::Conversation(const ConversationParts& parts, TurnRules rules)
    : parts_(parts), rules_(std::move(rules)) {}

Conversation::Snapshot Conversation::snapshot() const {
    const Session& session = parts_.session;
    if (session.transcript().tokens.empty()) {
        return {};
    }
    const auto logits = session.logits();
    return {session.transcript(), session.save_cache(), {logits.begin(), logits.end()}};
}

void Conversation::restore(const Snapshot& snapshot) {
    if (snapshot.transcript.tokens.empty()) {
        parts_.session.clear();
    } else {
        parts_.session.restore(Transcript(snapshot.transcript), snapshot.cache, snapshot.logits);
    }
}

Turn Conversation::attempt(const std::string& user, uint32_t number, const TurnEvents& events) {
    Session& session = parts_.session;
    const Stopwatch watch;
    session.read(session.transcript().tokens.empty() ? parts_.format.first(user) : parts_.format.next(user));

    Turn turn;
    turn.user = user;
    ReasoningStream stream(parts_.format.reasoning());
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
    TwoChoosers chooser(parts_.chooser, parts_.answer_chooser, stream);
    const std::vector<Token>& tokens = session.transcript().tokens;
    chooser.restart(tokens, tokens.size() + (uint64_t{number} << 32U));

    GenerationOptions options;
    options.max_tokens = rules_.max_tokens;
    options.max_seconds = rules_.max_seconds;
    options.repeat_limit = rules_.repeat_limit;
    options.stop = rules_.stop;
    // The thinking tags may be control tokens.
    options.show_special = parts_.format.reasoning().thinks();
    options.interrupted = events.interrupted;
    options.on_text = [&](std::string_view text) {
        take(stream.push(text));
        return true;
    };
    options.on_token = events.on_token;
    const Generation generation = generate(session, chooser, parts_.tokenizer, options, nullptr);
    take(stream.finish());
    turn.reason = generation.reason;
    turn.tokens = generation.tokens.size();
    turn.seconds = watch.seconds();
    turn.fault = judge(turn, stream.thinking());
    return turn;
}

Turn Conversation::draw(const std::string& user, uint32_t first_attempt, const TurnEvents& events) {
    const Snapshot before = snapshot();
    double seconds = 0;
    for (uint32_t made = 1;; ++made) {
        Turn turn = attempt(user, first_attempt + made - 1, events);
        turn.attempts = made;
        turn.seconds = seconds += turn.seconds;
        if (turn.fault == TurnFault::none) {
            turns_.push_back(turn);
            before_.push_back(before);
            next_draws_.push_back(first_attempt + made);
            if (before_.size() > most_undone) {
                before_.pop_front();
                next_draws_.pop_front();
            }
            return turn;
        }
        restore(before);
        if (made > rules_.retries || turn.reason == StopReason::interrupted) {
            return turn;
        }
        if (events.on_retry) {
            events.on_retry(turn.fault, made);
        }
    }
}

Turn Conversation::say(const std::string& user, const TurnEvents& events) { return draw(user, 0, events); }

std::optional<Turn> Conversation::retry(const TurnEvents& events) {
    if (before_.empty()) {
        return std::nullopt;
    }
    const std::string user = turns_.back().user;
    const uint32_t next = next_draws_.back();
    undo();
    return draw(user, next, events);
}

bool Conversation::undo() {
    if (before_.empty()) {
        return false;
    }
    restore(before_.back());
    before_.pop_back();
    next_draws_.pop_back();
    turns_.pop_back();
    return true;
}

void Conversation::reset() {
    parts_.session.clear();
    turns_.clear();
    before_.clear();
    next_draws_.clear();
}

void Conversation::resume(std::vector<Turn> turns) {
    turns_ = std::move(turns);
    before_.clear();
    next_draws_.clear();
}

std::string Conversation::state_hash() const {
    const Snapshot now = snapshot();
    const Transcript& t = now.transcript;
    std::vector<std::byte> bytes = now.cache;
    append(bytes, std::span<const Token>(t.tokens));
    append(bytes, std::span<const uint32_t>(t.distant));
    append(bytes, std::span<const uint32_t>(t.slots));
    const std::array<uint64_t, 8> numbers = {
        t.pinned,      t.window_start, t.evicted,        static_cast<uint64_t>(t.position_offset),
        t.soft_prompt, t.slots_gone,   t.slots_in_group, turns_.size()};
    append(bytes, std::span<const uint64_t>(numbers));
    append(bytes, std::span<const float>(now.logits));
    return sha256(bytes);
}

Json to_json(const Turn& turn) {
    return {{"user", turn.user},
            {"thinking", turn.thinking},
            {"answer", turn.answer},
            {"stop_reason", to_string(turn.reason)},
            {"fault", to_string(turn.fault)},
            {"attempts", turn.attempts},
            {"tokens", turn.tokens},
            {"seconds", turn.seconds}};
}

Turn turn_from_json(const Json& json) {
    Turn turn;
    turn.user = json.at("user").get<std::string>();
    turn.thinking = json.at("thinking").get<std::string>();
    turn.answer = json.at("answer").get<std::string>();
    turn.attempts = json.at("attempts").get<uint32_t>();
    turn.tokens = json.at("tokens").get<size_t>();
    turn.seconds = json.at("seconds").get<double>();
    return turn;
}

} // namespace spool
