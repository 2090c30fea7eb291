#include "llm/tokenizer.h"

#include <array>

#include <llama.h>

#include "core/error.h"

namespace spool {

Tokenizer::Tokenizer(const Model& model) : vocab_(llama_model_get_vocab(model.handle())) {}

std::vector<Token> Tokenizer::encode(std::string_view text, bool add_special, bool parse_special) const {
    const auto length = static_cast<int32_t>(text.size());
    std::vector<Token> tokens(text.size() + 4);
    int32_t count = llama_tokenize(vocab_, text.data(), length, tokens.data(),
                                   static_cast<int32_t>(tokens.size()), add_special, parse_special);
    if (count < 0) {
        tokens.resize(static_cast<size_t>(-count));
        count = llama_tokenize(vocab_, text.data(), length, tokens.data(),
                               static_cast<int32_t>(tokens.size()), add_special, parse_special);
    }
    if (count < 0) {
        fail(ErrorCode::invalid_argument, "the text of {} bytes cannot be tokenised", text.size());
    }
    tokens.resize(static_cast<size_t>(count));
    return tokens;
}

std::string Tokenizer::piece(Token token, bool special) const {
    std::array<char, 128> small{};
    const int32_t length =
        llama_token_to_piece(vocab_, token, small.data(), static_cast<int32_t>(small.size()), 0, special);
    if (length >= 0) {
        return {small.data(), static_cast<size_t>(length)};
    }
    std::string text(static_cast<size_t>(-length), '\0');
    llama_token_to_piece(vocab_, token, text.data(), static_cast<int32_t>(text.size()), 0, special);
    return text;
}

std::string Tokenizer::decode(std::span<const Token> tokens, bool special) const {
    std::string text;
    for (const Token token : tokens) {
        text += piece(token, special);
    }
    return text;
}

bool Tokenizer::is_end(Token token) const { return llama_vocab_is_eog(vocab_, token); }
Token Tokenizer::bos() const { return llama_vocab_bos(vocab_); }
Token Tokenizer::eos() const { return llama_vocab_eos(vocab_); }
int32_t Tokenizer::size() const { return llama_vocab_n_tokens(vocab_); }

} // namespace spool
