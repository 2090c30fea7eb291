#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "eval/cross_entropy.h"

namespace spool {
namespace {

TEST(CrossEntropy, MatchesTheDefinitionOnASmallVocabulary) {
    const std::vector<float> logits = {1.0F, 2.0F, 3.0F};
    const double sum = std::numbers::e + std::exp(2.0) + std::exp(3.0);
    EXPECT_NEAR(negative_log_likelihood(logits, 0), std::log(sum) - 1.0, 1e-7);
    EXPECT_NEAR(negative_log_likelihood(logits, 2), std::log(sum) - 3.0, 1e-7);
}

TEST(CrossEntropy, HugeLogitsDoNotOverflow) {
    const std::vector<float> logits = {1000.0F, 999.0F};
    EXPECT_NEAR(negative_log_likelihood(logits, 0), std::log1p(std::exp(-1.0)), 1e-6);
}

} // namespace
} // namespace spool
