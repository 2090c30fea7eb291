// The text that a turn adds to a conversation, in the model's own chat template: each turn is rendered by
// itself, since templates rewrite earlier turns (they drop thinking, and add system prompts) and what was
// read must stay as it was read.
#pragma once

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

class TurnFormat {
  public:
    /// All must outlive it. Throws Error{unsupported} for a template that does not show a turn's text as it
    /// is.
    TurnFormat(const ChatTemplate& chat, const Tokenizer& tokenizer, ReasoningFormat reasoning,
               TurnFormatOptions options);

    /// The first turn, from the conversation's start to where the reply begins.
    std::vector<Token> first(const std::string& user) const;
    /// A later turn: what closes the reply before it, the user's text, and where the reply begins.
    std::vector<Token> next(const std::string& user) const;
    /// Tokens of the start that stay pinned: BOS and the persona, at least one.
    uint32_t pinned() const;

    const ReasoningFormat& reasoning() const { return reasoning_; }

  private:
    std::vector<ChatMessage> opening(const std::string& user) const;
    /// Where the reply begins, the start of thinking included.
    std::string with_thinking(std::string prompt) const;
    std::vector<Token> encode_start(const std::string& text) const;

    const ChatTemplate& chat_;
    const Tokenizer& tokenizer_;
    ReasoningFormat reasoning_;
    TurnFormatOptions options_;
};

} // namespace spool
