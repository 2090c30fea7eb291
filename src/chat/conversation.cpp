#include "chat/conversation.h"

#include <array>
#include <utility>

#include "core/hash.h"

namespace spool {

namespace {

template <typename T>
void append(std::vector<std::byte>& bytes, std::span<const T> values) {
    const auto raw = std::as_bytes(values);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
}

} // namespace

Conversation::Conversation(const ConversationParts& parts, TurnRules rules)
    : parts_(parts), rules_(std::move(rules)) {}

Turn Conversation::draw(const std::string& user, uint32_t first_attempt, const TurnEvents& events) {
    const bool begins = parts_.session.transcript().tokens.empty();
    Snapshot before = take_snapshot(parts_.session);
    Turn turn = draw_turn(
        {parts_.session, parts_.tokenizer, parts_.format.reasoning(), parts_.chooser, parts_.answer_chooser},
        begins ? parts_.format.first(user) : parts_.format.next(user), rules_, before, first_attempt, events);
    turn.user = user;
    if (turn.fault == TurnFault::none) {
        turns_.push_back(turn);
        before_.push_back(std::move(before));
        next_draws_.push_back(first_attempt + turn.attempts);
        if (before_.size() > most_undone) {
            before_.pop_front();
            next_draws_.pop_front();
        }
    }
    return turn;
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
    restore_snapshot(parts_.session, before_.back());
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
    const Snapshot now = take_snapshot(parts_.session);
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
