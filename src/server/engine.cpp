#include "server/engine.h"

#include <algorithm>
#include <utility>

#include "core/hash.h"
#include "core/log_sum_exp.h"
#include "server/api_error.h"

namespace spool {

namespace {

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    return begin == std::string_view::npos ? ""
                                           : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

/// The text as a client gets it, and will send it back: bytes that are no characters are replaced.
std::string as_sent(const std::string& text) { return Json::parse(json_text(Json(text))).get<std::string>(); }

/// Writes down how likely each chosen token was.
class RecordingChooser final : public Chooser {
  public:
    RecordingChooser(Chooser& inner, int top, std::vector<TokenLogprob>& record)
        : inner_(inner), top_(top), record_(record) {}

    Token sample(std::span<const float> logits) override {
        const Token token = inner_.sample(logits);
        const auto norm = static_cast<float>(log_sum_exp(logits));
        TokenLogprob entry{token, logits[static_cast<size_t>(token)] - norm, {}};
        std::vector<Token> order(logits.size());
        for (size_t i = 0; i < order.size(); ++i) {
            order[i] = static_cast<Token>(i);
        }
        const auto wanted = static_cast<ptrdiff_t>(std::min<size_t>(static_cast<size_t>(top_), order.size()));
        std::ranges::partial_sort(order, order.begin() + wanted, [&](Token a, Token b) {
            return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
        });
        for (ptrdiff_t i = 0; i < wanted; ++i) {
            entry.top.emplace_back(order[static_cast<size_t>(i)],
                                   logits[static_cast<size_t>(order[static_cast<size_t>(i)])] - norm);
        }
        record_.push_back(std::move(entry));
        return token;
    }
    void restart(std::span<const Token> history, uint64_t position) override {
        record_.clear(); // another attempt
        inner_.restart(history, position);
    }

  private:
    Chooser& inner_;
    int top_;
    std::vector<TokenLogprob>& record_;
};

/// The key after each of `messages`.
std::vector<std::string> keys_of(const std::vector<ChatMessage>& messages, const std::string& root) {
    std::vector<std::string> keys;
    keys.reserve(messages.size());
    for (const ChatMessage& message : messages) {
        keys.push_back(conversation_key(keys.empty() ? root : keys.back(), message));
    }
    return keys;
}

/// The numbers of messages up to each reply that something follows, the longest first.
std::vector<size_t> turns_before(const std::vector<ChatMessage>& messages) {
    std::vector<size_t> lengths;
    for (size_t length = messages.size(); length-- > 1;) {
        if (messages[length - 1].role == "assistant") {
            lengths.push_back(length);
        }
    }
    return lengths;
}

/// Conversations with other tools began with another prompt.
std::string root_of(const ToolUse& tools) {
    std::string root = "spool";
    for (const ChatTool& tool : tools.tools) {
        root += '\0' + tool.name + '\0' + tool.description + '\0' + tool.parameters;
    }
    return root;
}

} // namespace

std::string conversation_key(const std::string& before, const ChatMessage& message) {
    std::string all = before + '\0' + message.role + '\0' + std::string(trimmed(message.content)) + '\0' +
                      message.tool_call_id;
    for (const ToolCall& call : message.tool_calls) {
        const Json arguments = Json::parse(call.arguments, nullptr, false);
        all += '\0' + call.name + '\0' + (arguments.is_discarded() ? call.arguments : arguments.dump());
    }
    return sha256(std::as_bytes(std::span(all)));
}

Engine::Engine(const Model& model, const Bundle* bundle, EngineOptions options)
    : model_(&model), options_(std::move(options)), tokenizer_(model),
      template_(model, options_.chat_template),
      format_(template_, tokenizer_, options_.reasoning, options_.format),
      pool_(model, bundle,
            [&] {
                PoolOptions pool = options_.pool;
                pool.memory.pin = format_.pinned();
                return pool;
            }()),
      store_(pool_, bundle, options_.store) {}

std::unique_ptr<Engine::Prepared> Engine::prepare(const TurnTask& task) {
    if (task.messages.empty() && task.raw_prompt.empty()) {
        bad_request("there is nothing to reply to: pass messages, or a prompt");
    }
    const std::string root = root_of(task.tools);
    const std::vector<std::string> message_keys = keys_of(task.messages, root);
    const std::vector<size_t> known = turns_before(task.messages);
    std::vector<std::string> keys;
    if (!task.continues.empty()) {
        keys.push_back(task.continues);
    } else if (task.becomes.empty()) {
        for (const size_t length : known) {
            keys.push_back(message_keys[length - 1]);
        }
    }
    const auto unknown = [&] {
        return ApiError(
            404, "invalid_request_error",
            fmt::format("{} is not known here (any more); send the whole conversation", task.continues));
    };
    if (task.must_exist && !store_.knows(task.continues)) {
        throw unknown();
    }
    auto lease = store_.lease(keys, !task.continues.empty());
    if (!lease) {
        const bool full = task.continues.empty() || store_.busy() == options_.pool.sessions;
        throw ApiError(503, "overloaded_error",
                       (full ? fmt::format("all {} conversations are in use", options_.pool.sessions)
                             : fmt::format("{} is being replied to", task.continues)) +
                           "; try again in a moment");
    }
    auto prepared = std::make_unique<Prepared>(task, std::move(lease));
    const auto index = prepared->lease->known();
    if (index) {
        prepared->key_before = keys[*index];
    } else if (task.must_exist) { // its file could not be read
        throw unknown();
    }
    prepared->key = message_keys.empty() ? root : message_keys.back();
    try {
        if (!task.raw_prompt.empty()) {
            prepared->prompt.tokens = tokenizer_.encode(task.raw_prompt, true, true);
        } else if (!index) {
            prepared->prompt = format_.start(task.messages, task.tools);
        } else {
            // With a session's name the whole conversation may come, or only what is new.
            const size_t read = task.continues.empty() ? known[*index] : known.empty() ? 0 : known.front();
            prepared->prompt = format_.following(
                {task.messages.begin() + static_cast<ptrdiff_t>(read), task.messages.end()}, task.tools);
        }
    } catch (const Error& error) {
        put_back(*prepared);
        throw to_api_error(error);
    }
    return prepared;
}

void Engine::put_back(Prepared& prepared) {
    if (prepared.begun) {
        restore_snapshot(prepared.lease->session(), prepared.before);
    }
    if (!prepared.key_before.empty()) {
        prepared.lease->keep(prepared.key_before, false);
    }
}

TurnOutcome Engine::run(Prepared& prepared, size_t choice, const OutcomeEvents& events) {
    try {
        return draw(prepared, choice, events);
    } catch (...) {
        put_back(prepared);
        throw;
    }
}

TurnOutcome Engine::draw(Prepared& prepared, size_t choice, const OutcomeEvents& events) {
    const TurnTask& task = prepared.task;
    Session& session = prepared.lease->session();
    if (!prepared.begun) {
        prepared.before = take_snapshot(session);
        prepared.begun = true;
    } else {
        restore_snapshot(session, prepared.before);
    }
    TurnOutcome outcome;
    outcome.known_tokens = session.transcript().tokens.size();
    outcome.prompt_tokens = outcome.known_tokens + prepared.prompt.tokens.size();

    const ReasoningFormat none;
    const ReasoningFormat& reasoning = task.raw_prompt.empty() ? format_.reasoning() : none;
    SamplerOptions constrained = task.sampler;
    if (!prepared.prompt.grammar.empty()) {
        constrained.grammar = prepared.prompt.grammar;
        constrained.grammar_start = prepared.prompt.grammar_start;
    } else if (!task.answer_grammar.empty()) {
        constrained.grammar = task.answer_grammar;
    }
    Sampler free(tokenizer_, task.sampler);
    Sampler answer(tokenizer_, constrained);
    const auto other = options_.chooser ? options_.chooser(tokenizer_) : nullptr;
    // Without thinking, the reply is the answer.
    Chooser& first = other ? *other : reasoning.thinks() ? static_cast<Chooser&>(free) : answer;
    RecordingChooser recorded(first, task.top_logprobs, outcome.logprobs);
    Chooser& chooser = task.top_logprobs >= 0 ? static_cast<Chooser&>(recorded) : first;

    TurnEvents turn_events;
    turn_events.on_thinking = events.on_thinking;
    if (prepared.prompt.parser == nullptr) {
        turn_events.on_answer = events.on_answer;
    }
    turn_events.interrupted = events.cancelled;
    {
        const Participant taking_part(pool_);
        outcome.turn = draw_turn(
            {session, tokenizer_, reasoning, chooser, reasoning.thinks() && !other ? &answer : nullptr},
            prepared.prompt.tokens, task.rules, prepared.before, static_cast<uint32_t>(choice) << 8U,
            turn_events);
    }
    outcome.turn.answer = as_sent(outcome.turn.answer);
    if (!outcome.turn.thinking.empty()) {
        outcome.reasoning_tokens = tokenizer_.encode(outcome.turn.thinking, false, true).size();
    }
    if (prepared.prompt.parser != nullptr) {
        ParsedReply parsed = prepared.prompt.parser->parse(outcome.turn.answer, false);
        for (size_t i = 0; i < parsed.tool_calls.size(); ++i) {
            if (parsed.tool_calls[i].id.empty()) {
                parsed.tool_calls[i].id =
                    "call_" +
                    conversation_key(prepared.key, {"assistant", outcome.turn.answer}).substr(0, 16) +
                    std::to_string(i);
            }
        }
        outcome.turn.answer = parsed.content;
        outcome.tool_calls = std::move(parsed.tool_calls);
    }
    const Transcript& transcript = session.transcript();
    outcome.compressed_tokens =
        transcript.window_start - std::min(transcript.window_start, transcript.pinned);

    if (outcome.turn.reason == StopReason::interrupted || outcome.turn.fault != TurnFault::none) {
        put_back(prepared);
    } else if (!task.becomes.empty()) {
        prepared.lease->keep(task.becomes, true);
    } else if (task.raw_prompt.empty()) {
        prepared.lease->keep(
            conversation_key(prepared.key, {"assistant", outcome.turn.answer, outcome.tool_calls}), false);
    }
    return outcome;
}

} // namespace spool
