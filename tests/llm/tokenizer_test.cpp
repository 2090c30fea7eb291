#include <algorithm>

#include <gtest/gtest.h>
#include <llama.h>

#include "llm/tokenizer.h"
#include "support/model.h"

namespace spool {
namespace {

class TokenizerTest : public test::WithDefaultModel {
  protected:
    void SetUp() override {
        WithDefaultModel::SetUp();
        if (!IsSkipped()) {
            tokenizer_ = std::make_unique<Tokenizer>(*model_);
        }
    }
    /// libllama's own, with room to spare.
    std::vector<Token> by_libllama(const std::string& text, bool add_special, bool parse_special) const {
        std::vector<Token> tokens(text.size() + 16);
        const int32_t count = llama_tokenize(llama_model_get_vocab(model_->handle()), text.data(),
                                             static_cast<int32_t>(text.size()), tokens.data(),
                                             static_cast<int32_t>(tokens.size()), add_special, parse_special);
        EXPECT_GE(count, 0);
        tokens.resize(static_cast<size_t>(std::max(count, 0)));
        return tokens;
    }
    std::unique_ptr<Tokenizer> tokenizer_;
};

const std::vector<std::string>& texts() {
    static const std::vector<std::string> list = {
        "",
        "a",
        "The keeper counted 1,024 steps.",
        "  leading, trailing and\n\n\tother white space \n",
        "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich",
        "日本語のテキスト, русский текст, نص عربي",
        "emoji 👩‍👩‍👧‍👦 and \xF0\x9F\x8F\xB3",
        std::string("a NUL \0 within", 14),
        "<|im_start|>user\nHi<|im_end|>"};
    return list;
}

TEST_F(TokenizerTest, TextComesBackByteForByte) {
    for (const std::string& text : texts()) {
        EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text, false, false)), text);
    }
    std::string printable; // this vocabulary lacks some control characters
    for (char c = ' '; c <= '~'; ++c) {
        printable.push_back(c);
    }
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(printable, false, false)), printable);
}

TEST_F(TokenizerTest, EqualsLibllamas) {
    for (const std::string& text : texts()) {
        for (const bool add_special : {false, true}) {
            for (const bool parse_special : {false, true}) {
                EXPECT_EQ(tokenizer_->encode(text, add_special, parse_special),
                          by_libllama(text, add_special, parse_special))
                    << text;
            }
        }
    }
    EXPECT_EQ(tokenizer_->size(), llama_vocab_n_tokens(tokenizer_->handle()));
}

TEST_F(TokenizerTest, ATextOfMoreTokensThanBytesExpectedIsWhole) {
    const std::string text(5000, '~');
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text, true, false)), text);
}

TEST_F(TokenizerTest, ControlTokensAreParsedOnlyWhenAskedFor) {
    const auto parsed = tokenizer_->encode("<|im_start|>", false, true);
    ASSERT_EQ(parsed.size(), 1U);
    EXPECT_EQ(tokenizer_->piece(parsed[0]), "") << "control tokens are no text";
    EXPECT_EQ(tokenizer_->piece(parsed[0], true), "<|im_start|>");
    EXPECT_EQ(tokenizer_->decode(parsed, true), "<|im_start|>");

    const auto plain = tokenizer_->encode("<|im_start|>", false, false);
    EXPECT_GT(plain.size(), 1U);
    EXPECT_EQ(std::ranges::find(plain, parsed[0]), plain.end());
    EXPECT_EQ(tokenizer_->decode(plain), "<|im_start|>");
}

TEST_F(TokenizerTest, EndTokensAreThoseOfTheVocabularyAndNoOthers) {
    const Token end_of_turn = tokenizer_->encode("<|im_end|>", false, true).at(0);
    EXPECT_TRUE(tokenizer_->is_end(end_of_turn));
    EXPECT_TRUE(tokenizer_->is_end(tokenizer_->eos()));
    EXPECT_FALSE(tokenizer_->is_end(tokenizer_->encode("<|im_start|>", false, true).at(0)));
    for (const Token token : tokenizer_->encode("The end.", false, false)) {
        EXPECT_FALSE(tokenizer_->is_end(token)) << tokenizer_->piece(token);
    }
    for (Token token = 0; token < tokenizer_->size(); ++token) {
        ASSERT_EQ(tokenizer_->is_end(token), llama_vocab_is_eog(tokenizer_->handle(), token)) << token;
    }
}

TEST_F(TokenizerTest, PiecesLongerThanTheUsualAreWhole) {
    // A character of several tokens comes in parts; a long run of spaces is one long piece.
    std::string longest;
    for (Token token = 0; token < tokenizer_->size(); ++token) {
        if (auto piece = tokenizer_->piece(token, true); piece.size() > longest.size()) {
            longest = std::move(piece);
        }
    }
    EXPECT_GT(longest.size(), 10U);
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(longest, false, true), true), longest);
}

} // namespace
} // namespace spool
