// Text to token ids and back, as the model's own vocabulary has it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "llm/model.h"

struct llama_vocab;

namespace spool {

class Tokenizer {
  public:
    /// `model` must outlive the tokenizer.
    explicit Tokenizer(const Model& model);

    /// `add_special`: let the vocabulary add BOS (and EOS) as it is configured to.
    /// `parse_special`: "<|im_start|>" in `text` becomes the control token instead of plain text.
    std::vector<Token> encode(std::string_view text, bool add_special, bool parse_special) const;
    /// The bytes of one token: possibly a part of a UTF-8 character. Control tokens give "" unless `special`.
    std::string piece(Token token, bool special = false) const;
    std::string decode(std::span<const Token> tokens, bool special = false) const;

    /// End of generation: EOS, end of turn and the like.
    bool is_end(Token token) const;
    /// -1 when the vocabulary has none.
    Token bos() const;
    Token eos() const;
    int32_t size() const;
    const llama_vocab* handle() const { return vocab_; }

  private:
    const llama_vocab* vocab_;
};

} // namespace spool
