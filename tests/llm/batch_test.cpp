#include <cmath>

#include <gtest/gtest.h>
#include <llama.h>

#include "core/error.h"
#include "llm/context.h"
#include "support/expect_error.h"
#include "support/small_model.h"

namespace spool {
namespace {

TEST(Batch, ShowsLibllamaTheRowsAsTheyWereAdded) {
    Batch batch;
    batch.add(11, 0, 3, false);
    batch.add(12, 1, 3, true);
    batch.add(13, 7, 5, false);
    ASSERT_EQ(batch.size(), 3U);
    const llama_batch all = batch.view(0, 3);
    EXPECT_EQ(all.n_tokens, 3);
    EXPECT_EQ(all.embd, nullptr);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(all.token[i], 11 + i);
        EXPECT_EQ(all.n_seq_id[i], 1);
        EXPECT_EQ(all.logits[i], i == 1 ? 1 : 0);
    }
    EXPECT_EQ(all.pos[2], 7);
    EXPECT_EQ(all.seq_id[1][0], 3);
    EXPECT_EQ(all.seq_id[2][0], 5);

    const llama_batch end = batch.view(1, 2);
    EXPECT_EQ(end.n_tokens, 2);
    EXPECT_EQ(end.token[0], 12);
    EXPECT_EQ(end.pos[1], 7);
    EXPECT_EQ(end.seq_id[1][0], 5);
    EXPECT_EQ(end.logits[0], 1);
}

TEST(Batch, OfEmbeddingsHoldsRowsOfItsWidthOnly) {
    Batch batch(3);
    batch.add(std::vector<float>{1, 2, 3}, 0, 0, false);
    batch.add(std::vector<float>{4, 5, 6}, 1, 0, true);
    const llama_batch end = batch.view(1, 1);
    EXPECT_EQ(end.token, nullptr);
    EXPECT_EQ(std::vector<float>(end.embd, end.embd + 3), (std::vector<float>{4, 5, 6}));
    EXPECT_EQ(end.pos[0], 1);
    test::expect_error(ErrorCode::internal, {"2 floats", "width 3"},
                       [&] { batch.add(std::vector<float>{1, 2}, 2, 0, false); });
    EXPECT_EQ(batch.size(), 2U) << "the refused row is not half in it";
}

TEST(Batch, IsEmptyAfterClearAndKeepsItsWidth) {
    Batch batch(2);
    batch.add(std::vector<float>{1, 2}, 0, 0, true);
    batch.clear();
    EXPECT_EQ(batch.size(), 0U);
    batch.add(std::vector<float>{3, 4}, 9, 1, false);
    const llama_batch view = batch.view(0, 1);
    EXPECT_EQ(view.embd[1], 4);
    EXPECT_EQ(view.pos[0], 9);
    EXPECT_EQ(view.logits[0], 0);
}

class DecodeTest : public test::WithSmallModel {
  protected:
    std::vector<float> last_logits(Batch& batch, uint32_t limit) const {
        ContextOptions options;
        options.batch = limit;
        options.threads = 1;
        Context context(*model_, options);
        context.decode(batch);
        const auto logits = context.logits(batch.size() - 1);
        return {logits.begin(), logits.end()};
    }
    static void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) {
            ASSERT_NEAR(a[i], b[i], 1e-4) << i;
        }
    }
    std::vector<Token> tokens_ = {5, 60, 200, 7, 33, 102, 9, 250, 1, 18};
};

TEST_F(DecodeTest, ABatchLargerThanTheContextTakesIsFedInSteps) {
    Batch batch;
    for (size_t i = 0; i < tokens_.size(); ++i) {
        batch.add(tokens_[i], static_cast<Position>(i), 0, i + 1 == tokens_.size());
    }
    const auto whole = last_logits(batch, 512);
    expect_near(last_logits(batch, 3), whole);
    // The order matters, so what is equal above was not equal by chance.
    batch.clear();
    for (size_t i = 0; i < tokens_.size(); ++i) {
        batch.add(tokens_[i == 0 ? 1 : i], static_cast<Position>(i), 0, i + 1 == tokens_.size());
    }
    const auto other = last_logits(batch, 512);
    float largest = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
        largest = std::max(largest, std::abs(whole[i] - other[i]));
    }
    EXPECT_GT(largest, 1e-3F);
}

TEST_F(DecodeTest, ATokenFedAsItsEmbeddingRowIsTheToken) {
    const TokenRows& rows = model_->token_rows();
    Batch as_tokens;
    Batch as_rows(rows.width());
    std::vector<float> row(static_cast<size_t>(rows.width()));
    for (size_t i = 0; i < tokens_.size(); ++i) {
        const bool output = i + 1 == tokens_.size();
        as_tokens.add(tokens_[i], static_cast<Position>(i), 0, output);
        rows.read(std::span(&tokens_[i], 1), row.data());
        as_rows.add(row, static_cast<Position>(i), 0, output);
    }
    expect_near(last_logits(as_rows, 512), last_logits(as_tokens, 512));
}

} // namespace
} // namespace spool
