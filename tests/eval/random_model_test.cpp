// Models made up from a shape: `spool init`.
#include <gtest/gtest.h>

#include "eval/random_model.h"
#include "llm/tokenizer.h"
#include "support/expect_error.h"
#include "support/model.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

class RandomModelTest : public test::WithDefaultModel {
  protected:
    test::TemporaryFolder folder_;
};

TEST_F(RandomModelTest, ShortenedVocabularySpellsEveryText) {
    const auto path = folder_ / "tiny.gguf";
    write_random_model(path, {}, GgufFile(model_->path()), 1024);
    const auto tiny = test::load_model(path);
    const Tokenizer tokenizer(*tiny);
    const Tokenizer whole(*model_);
    const std::string text = "The code of the red lantern is 482. \xC3\x9C\xE2\x82\xAC\xF0\x9F\x98\x80\n";
    const auto tokens = tokenizer.encode(text, false, false);
    std::string back;
    for (const Token token : tokens) {
        EXPECT_LT(token, 1024);
        back += tokenizer.piece(token);
    }
    EXPECT_EQ(back, text);
    EXPECT_GT(tokens.size(), whole.encode(text, false, false).size());
    EXPECT_LT(tokens.size(), text.size());
}

TEST_F(RandomModelTest, WhatMakesNoModelIsRefused) {
    const GgufFile tokenizer(model_->path());
    const auto path = folder_ / "none.gguf";
    test::expect_error(ErrorCode::unsupported, {"take at least"},
                       [&] { write_random_model(path, {}, tokenizer, 100); });
    test::expect_error(ErrorCode::invalid_argument, {"heads"},
                       [&] { write_random_model(path, {.width = 64, .heads = 5}, tokenizer); });
    EXPECT_FALSE(std::filesystem::exists(path));
}

} // namespace
} // namespace spool
