#include <array>

#include <gtest/gtest.h>

#include "core/random.h"

namespace spool {
namespace {

TEST(Random, the_engine_is_the_standards_mt19937_64) {
    Random random(5489); // the standard states the 10,000th number of the default seed
    uint64_t last = 0;
    for (int i = 0; i < 10'000; ++i) {
        last = random.bits();
    }
    EXPECT_EQ(last, 9981545732273789042U);
}

TEST(Random, the_same_seed_gives_the_same_numbers_and_another_seed_others) {
    Random a(1);
    Random b(1);
    Random c(2);
    EXPECT_EQ(a.bits(), b.bits());
    EXPECT_EQ(a.uniform(), b.uniform());
    EXPECT_EQ(a.normal(), b.normal());
    EXPECT_NE(a.bits(), c.bits());
}

TEST(Random, uniform_numbers_fill_the_half_open_unit_interval) {
    Random random(3);
    double sum = 0;
    for (int i = 0; i < 100'000; ++i) {
        const double u = random.uniform();
        ASSERT_GE(u, 0.0);
        ASSERT_LT(u, 1.0);
        sum += u;
    }
    EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(Random, below_reaches_every_number_under_the_bound_about_equally) {
    Random random(4);
    std::array<int, 7> counts{};
    for (int i = 0; i < 70'000; ++i) {
        ++counts.at(random.below(7));
    }
    for (const int count : counts) {
        EXPECT_NEAR(count, 10'000, 500);
    }
    EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, normal_numbers_have_mean_zero_and_variance_one) {
    Random random(5);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < 100'000; ++i) {
        const double x = random.normal();
        ASSERT_TRUE(std::isfinite(x));
        sum += x;
        squares += x * x;
    }
    EXPECT_NEAR(sum / 100'000, 0.0, 0.02);
    EXPECT_NEAR(squares / 100'000, 1.0, 0.03);
}

} // namespace
} // namespace spool
