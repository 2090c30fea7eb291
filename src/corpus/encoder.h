// What preparing a corpus needs of a model: text to token ids. The corpus layer knows no model; whoever has
// one implements this (the command line does, with the engine's own tokenizer and chat template).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/token.h"
#include "corpus/trace.h"

namespace spool {

struct ThinkTags {
    std::string start = "<think>";
    std::string end = "</think>";
};

struct EncodedPrompt {
    std::string text; ///< as the chat template renders it, ending where the reply begins
    std::vector<Token> tokens;
};

/// prompt() and holds_control_token() are called from one thread, the others from several at once.
class Encoder {
  public:
    virtual ~Encoder() = default;

    /// Throws Error{invalid_argument} if the template refuses the conversation.
    virtual EncodedPrompt prompt(const std::vector<Message>& messages) const = 0;
    /// Ids of a reply, or of a part of it that begins at a line's start. The think tags become the model's
    /// own tokens for them; nothing else in `text` becomes a control token.
    virtual std::vector<Token> reply(std::string_view text) const = 0;
    /// True if `text` holds what would become a control token inside a prompt: such a record could end a
    /// turn.
    virtual bool holds_control_token(std::string_view text) const = 0;
    /// The bytes of a token; joined, those of reply(text) are `text`, perhaps with one space before it.
    virtual std::string piece(Token token) const = 0;
    /// Ends the assistant's turn.
    virtual Token end() const = 0;
    virtual ThinkTags tags() const = 0;
};

/// The reply as text: tags around the thinking, unless the prompt already opened them, then the answer.
///   <think>\nthink\n</think>\n\nanswer
std::string reply_text(const std::string& rendered_prompt, const ThinkTags& tags, const std::string& think,
                       const std::string& answer);

} // namespace spool
