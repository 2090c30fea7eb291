// The absorbed, tiled form against a straightforward double-precision one, on shapes that fit no tile.
#include <gtest/gtest.h>

#include "core/error.h"
#include "pooler/compare.h"
#include "pooler/generated.h"
#include "pooler/reference.h"

namespace spool::test {
namespace {

struct Case {
    PoolerShape shape;
    size_t length;
};

void expect_reference(const PoolerWeights& weights, size_t length) {
    const size_t hidden = weights.shape.hidden;
    const std::vector<float> rows = generated_rows(length, hidden);
    const PoolResult expected = ReferencePooler(weights).pool(rows);
    const PoolResult found = Pooler(weights).pool(length, rows_of(rows, hidden));

    ASSERT_EQ(found.soft_prompt.size(), weights.shape.n_sp * hidden);
    ASSERT_EQ(found.mass.size(), length);
    EXPECT_LE(max_difference(found.soft_prompt, expected.soft_prompt), 2e-6);
    EXPECT_LE(max_relative_difference(found.mass, expected.mass), 1e-5);
    const double total = std::accumulate(found.mass.begin(), found.mass.end(), 0.0);
    const double whole = weights.shape.layers * weights.shape.n_sp;
    EXPECT_NEAR(total, whole, 1e-5 * whole);
}

class PoolerReference : public testing::TestWithParam<Case> {};

TEST_P(PoolerReference, absorbed_form_equals_the_unabsorbed_one) {
    expect_reference(generated_weights(GetParam().shape), GetParam().length);
}

INSTANTIATE_TEST_SUITE_P(
    shapes, PoolerReference,
    testing::Values(
        Case{{.hidden = 24, .n_sp = 5, .heads = 3, .layers = 2, .ffn = 10}, 7},
        Case{{.hidden = 24, .n_sp = 5, .heads = 3, .layers = 2, .ffn = 10}, 1},
        Case{{.hidden = 64, .n_sp = 16, .heads = 4, .layers = 1, .ffn = 96}, 48},  // one full tile
        Case{{.hidden = 64, .n_sp = 16, .heads = 4, .layers = 1, .ffn = 96}, 49},  // and one token
        Case{{.hidden = 33, .n_sp = 17, .heads = 3, .layers = 2, .ffn = 7}, 100},  // odd hidden
        Case{{.hidden = 40, .n_sp = 1, .heads = 1, .layers = 3, .ffn = 1}, 97},    // one query, one head
        Case{{.hidden = 270, .n_sp = 33, .heads = 5, .layers = 1, .ffn = 50}, 31}, // two depth blocks
        Case{{.hidden = 6, .n_sp = 3, .heads = 6, .layers = 2, .ffn = 4}, 50}));   // width 1

// Past the kept 4,096 tokens the probabilities are computed a second time for the mass.
TEST(PoolerReferenceLong, mass_is_right_for_tokens_whose_scores_are_not_kept) {
    expect_reference(generated_weights({.hidden = 12, .n_sp = 3, .heads = 2, .layers = 2, .ffn = 8}), 4300);
}

// Scores that rise from tile to tile make the running maximum of the softmax change all the time, and scores
// far apart make most probabilities vanish.
TEST(PoolerReferenceLong, a_peaked_attention_survives_the_running_maximum) {
    PoolerWeights weights = generated_weights({.hidden = 32, .n_sp = 4, .heads = 2, .layers = 1, .ffn = 8});
    for (float& weight : weights.tensors["blocks.0.cross.in_proj_weight"]) {
        weight *= 60.0F;
    }
    const std::vector<float> rows = generated_rows(400, 32);
    const PoolResult expected = ReferencePooler(weights).pool(rows);
    const PoolResult found = Pooler(weights).pool(400, rows_of(rows, 32));
    ASSERT_GE(*std::ranges::max_element(expected.mass), 0.5F);
    EXPECT_LE(max_difference(found.soft_prompt, expected.soft_prompt), 2e-4);
    EXPECT_LE(max_difference(found.mass, expected.mass), 2e-4);
}

} // namespace
} // namespace spool::test
