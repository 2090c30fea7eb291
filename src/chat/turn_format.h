// The text that a turn adds to a conversation, in the model's own chat template: each turn is rendered by
// itself, since templates rewrite earlier turns (they drop thinking, and add system prompts) and what was
// read must stay as it was read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/reasoning.h"
#include "llm/tokenizer.h"

namespace spool {

struct TurnFormatOptions {
    std::string persona;      ///< stays pinned; empty: none
    std::string instruction;  ///< a client's system message; it goes into the first user turn
    bool system_role = false; ///< the instruction stays a system message, for models trained with one
};

/// The tokens a turn adds, to where the reply begins, and what the reply must be parsed with.
struct TurnPrompt {
    std::vector<Token> tokens;
    std::string grammar; ///< of tool calls; empty without tools
    GrammarStart grammar_start;
    std::shared_ptr<const ReplyParser> parser; ///< nullptr without tools
};

class TurnFormat {
  public:
    /// All must outlive it. Throws Error{unsupported} for a template that does not show a turn's text as it
    /// is.
    TurnFormat(const ChatTemplate& chat, const Tokenizer& tokenizer, ReasoningFormat reasoning,
               TurnFormatOptions options);

    /// A conversation from its start. System messages go where the options say, as the instruction does.
    TurnPrompt start(const std::vector<ChatMessage>& messages, const ToolUse& tools = {}) const;
    /// What follows a reply that the model has written: the text that closes it, and `messages`. Throws
    /// Error{invalid_argument} if the template refuses them there.
    TurnPrompt following(const std::vector<ChatMessage>& messages, const ToolUse& tools = {}) const;
    /// The same for one text of the user's.
    std::vector<Token> first(const std::string& user) const { return start({{"user", user}}).tokens; }
    std::vector<Token> next(const std::string& user) const { return following({{"user", user}}).tokens; }
    /// Tokens of the start that stay pinned: BOS and the persona, at least one.
    uint32_t pinned() const;

    const ReasoningFormat& reasoning() const { return reasoning_; }

  private:
    std::vector<ChatMessage> folded(const std::vector<ChatMessage>& messages, std::string instruction) const;
    TurnPrompt prompt_of(const RenderedChat& rendered, std::string text, bool starts) const;
    /// Where the reply begins, the start of thinking included.
    std::string with_thinking(std::string prompt) const;
    std::vector<Token> encode_start(const std::string& text) const;

    const ChatTemplate& chat_;
    const Tokenizer& tokenizer_;
    ReasoningFormat reasoning_;
    TurnFormatOptions options_;
};

} // namespace spool
