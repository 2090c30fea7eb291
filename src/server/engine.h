// Turns of many conversations at once, on one model: what every route of the server asks for.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/draw.h"
#include "chat/turn_format.h"
#include "context/session.h"
#include "server/state_store.h"

namespace spool {

struct EngineOptions {
    PoolOptions pool; ///< pool.sessions conversations at a time
    TurnRules rules;  ///< outer limits; a request can only ask for less
    TurnFormatOptions format;
    SamplerOptions sampler; ///< defaults of a request
    ReasoningFormat reasoning;
    std::string chat_template; ///< Jinja; empty: the model's
    /// Makes what chooses the tokens of a reply instead of a Sampler; tests write replies with it.
    std::function<std::unique_ptr<Chooser>(const Tokenizer& tokenizer)> chooser;
    StoreOptions store;
};

/// One request for a reply.
struct TurnTask {
    std::vector<ChatMessage> messages; ///< the whole conversation, or what is new in the one it continues
    std::string raw_prompt;            ///< instead of messages: text as it is, no template, no thinking
    std::string continues;             ///< key of the conversation before; empty: found by its messages
    std::string becomes;               ///< key of the conversation afterwards; empty: that of its messages
    bool must_exist = false;           ///< what it continues must be there
    ToolUse tools;
    SamplerOptions sampler;
    std::string answer_grammar; ///< of the answer, not of the thinking
    TurnRules rules;
    size_t choices = 1;
    int top_logprobs = -1; ///< -1: none wanted
};

struct TokenLogprob {
    Token token = 0;
    float logprob = 0;
    std::vector<std::pair<Token, float>> top;
};

struct TurnOutcome {
    Turn turn;
    std::vector<ToolCall> tool_calls;
    size_t prompt_tokens = 0; ///< of the whole conversation before the reply
    size_t known_tokens = 0;  ///< of those, read before this request
    size_t reasoning_tokens = 0;
    size_t compressed_tokens = 0; ///< outside the window afterwards
    std::vector<TokenLogprob> logprobs;
};

struct OutcomeEvents {
    std::function<void(std::string_view)> on_thinking;
    std::function<void(std::string_view)> on_answer; ///< not called when the reply may hold tool calls
    const std::atomic<bool>* cancelled = nullptr;
};

class Engine {
  public:
    /// All must outlive it. `bundle` may be nullptr.
    Engine(const Model& model, const Bundle* bundle, EngineOptions options);

    /// A task whose session is leased and whose prompt is ready.
    class Prepared;
    /// Throws ApiError 400 for what the template refuses, 503 when all sessions are busy.
    std::unique_ptr<Prepared> prepare(const TurnTask& task);
    /// Draws choice number `choice`. Choices after the first start from where the first did; the conversation
    /// goes on from the last. A reply that was cancelled leaves the conversation as it was before.
    TurnOutcome run(Prepared& prepared, size_t choice, const OutcomeEvents& events);

    const Model& model() const { return *model_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    SessionPool& pool() { return pool_; }
    const StateStore& store() const { return store_; }
    const EngineOptions& options() const { return options_; }
    const TurnFormat& format() const { return format_; }

  private:
    TurnOutcome draw(Prepared& prepared, size_t choice, const OutcomeEvents& events);
    /// The conversation is what it was before.
    static void put_back(Prepared& prepared);

    const Model* model_;
    EngineOptions options_;
    Tokenizer tokenizer_;
    ChatTemplate template_;
    TurnFormat format_;
    SessionPool pool_;
    StateStore store_;
};

class Engine::Prepared {
  public:
    Prepared(TurnTask wanted, std::unique_ptr<StateStore::Lease> leased)
        : task(std::move(wanted)), lease(std::move(leased)) {}

    TurnTask task;
    std::unique_ptr<StateStore::Lease> lease;
    std::string key_before; ///< of the conversation the session holds; empty: none
    std::string key;        ///< of all messages of the request
    TurnPrompt prompt;
    Snapshot before;
    bool begun = false;
};

/// Stands for a conversation up to and including `message`, which follows what `before` stands for. Thinking
/// and white space at the ends do not count: clients do not send them back as they were.
std::string conversation_key(const std::string& before, const ChatMessage& message);

} // namespace spool
