// OpenAI's request and reply shapes, from and to the engine's.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

/// Writes replies as a route's clients expect them: whole, or as events ("data: {...}\n\n") one after
/// another.
class ReplyWriter {
  public:
    using Events = std::vector<std::string>;

    virtual ~ReplyWriter() = default;
    virtual Json whole(const std::vector<TurnOutcome>& choices) = 0;
    virtual Events begin(size_t choice) = 0;
    virtual Events thinking(size_t choice, std::string_view text) = 0;
    virtual Events answer(size_t choice, std::string_view text) = 0;
    /// All of `outcome` that no event before has told.
    virtual Events end(size_t choice, const TurnOutcome& outcome) = 0;
    virtual Events finish(const std::vector<TurnOutcome>& choices) = 0;
    virtual Events error(const Json& body) = 0;
};

/// Of /v1/chat/completions, or of /v1/completions if `text`. `with_usage`: a last event counts tokens.
std::unique_ptr<ReplyWriter> completion_writer(bool text, const std::string& id, const std::string& model,
                                               bool with_usage, const Tokenizer& tokenizer);

/// As OpenAI's shapes state times.
int64_t seconds_since_epoch();

/// {"prompt_tokens", "completion_tokens", "total_tokens", ...} summed over choices of one prompt.
Json usage_of(const std::vector<TurnOutcome>& choices);

} // namespace spool
