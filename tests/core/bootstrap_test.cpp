#include <cmath>

#include <gtest/gtest.h>

#include "core/bootstrap.h"
#include "core/random.h"

namespace spool {
namespace {

TEST(Bootstrap, TheIntervalOfAMeanIsAboutTwoStandardErrorsWide) {
    Random random(3);
    std::vector<double> values(200);
    for (double& value : values) {
        value = 5 + random.normal();
    }
    const Interval interval =
        bootstrap(values.size(), [&](std::span<const size_t> drawn) { return mean_over(values, drawn); });
    EXPECT_NEAR(interval.hi - interval.lo, 2 * 1.96 / std::sqrt(200.0), 0.05);
    EXPECT_LT(interval.lo, interval.value);
    EXPECT_GT(interval.hi, interval.value);
}

TEST(Bootstrap, TheSameSeedGivesTheSameInterval) {
    const std::vector<double> values = {1, 2, 3, 4, 9};
    const auto mean = [&](std::span<const size_t> drawn) { return mean_over(values, drawn); };
    EXPECT_EQ(bootstrap(5, mean).lo, bootstrap(5, mean).lo);
    EXPECT_EQ(bootstrap(5, mean).hi, bootstrap(5, mean).hi);
}

TEST(Bootstrap, DrawsWithoutAValueAreLeftOut) {
    const Interval interval =
        bootstrap(4, [](std::span<const size_t> drawn) { return drawn[0] == 0 ? std::nan("") : 2.0; });
    EXPECT_EQ(interval.lo, 2.0);
    EXPECT_EQ(interval.hi, 2.0);
}

} // namespace
} // namespace spool
