// The engine's tokenizer and chat template, as preparing a corpus asks for them.
#pragma once

#include <string>
#include <vector>

#include "corpus/encoder.h"
#include "llm/chat_template.h"
#include "llm/model.h"
#include "llm/tokenizer.h"

namespace spool::cli {

class ChatEncoder final : public Encoder {
  public:
    /// `model` must outlive it.
    explicit ChatEncoder(const Model& model);

    /// As `spool run --chat` encodes it.
    EncodedPrompt prompt(const std::vector<Message>& messages) const override;
    std::vector<Token> reply(std::string_view text) const override;
    bool holds_control_token(std::string_view text) const override;
    std::string piece(Token token) const override { return tokenizer_.piece(token, true); }
    Token end() const override { return end_; }
    ThinkTags tags() const override { return tags_; }

  private:
    /// What the template puts behind a reply, if that ends generation; else the vocabulary's EOS.
    Token find_end() const;

    Tokenizer tokenizer_;
    ChatTemplate template_;
    ThinkTags tags_;
    Token end_ = -1;
};

} // namespace spool::cli
