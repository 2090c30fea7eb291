// OpenAI's request and reply shapes, from and to the engine's.
#pragma once

#include <string>

#include "core/json.h"
#include "server/engine.h"

namespace spool {

/// What a request for a completion says, beside the task itself.
struct CompletionRequest {
    TurnTask task;
    bool stream = false;
    bool stream_usage = false; ///< stream_options.include_usage
    std::string model;         ///< as the client named it; echoed
};

/// Of /v1/chat/completions. `defaults`: what a field that is not there means. Throws ApiError 400 naming the
/// field, what it holds and what was expected.
CompletionRequest parse_chat_request(const Json& body, const EngineOptions& defaults);
/// Of /v1/completions: `prompt` is text, read as it is.
CompletionRequest parse_text_request(const Json& body, const EngineOptions& defaults);

/// Which of the two shapes a reply has.
enum class ReplyShape { chat, text };

/// One reply, or one of its pieces, as its route writes it.
class ReplyWriter {
  public:
    ReplyWriter(ReplyShape shape, std::string id, std::string model, const Tokenizer& tokenizer);

    /// The whole reply, of all choices.
    Json whole(const std::vector<TurnOutcome>& choices) const;
    /// A piece of choice number `choice`: {"content": ...}, {"reasoning_content": ...}, {"role": ...}.
    Json piece(size_t choice, const Json& delta) const;
    /// The last piece of a choice: why it ended, and tool calls.
    std::vector<Json> ending(size_t choice, const TurnOutcome& outcome) const;
    /// A piece without choices, with the counts.
    Json usage_piece(const std::vector<TurnOutcome>& choices) const;

  private:
    Json head(bool piece) const;
    Json choice_of(size_t choice, const TurnOutcome& outcome) const;

    ReplyShape shape_;
    std::string id_;
    std::string model_;
    const Tokenizer& tokenizer_;
    int64_t created_;
};

/// {"prompt_tokens", "completion_tokens", "total_tokens", ...} summed over choices of one prompt.
Json usage_of(const std::vector<TurnOutcome>& choices);

} // namespace spool
