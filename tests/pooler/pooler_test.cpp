#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "pooler/generated.h"
#include "pooler/pooler.h"

namespace spool::test {
namespace {

constexpr PoolerShape small{.hidden = 48, .n_sp = 20, .heads = 3, .layers = 2, .ffn = 64};

/// The error `call` throws, as "code: message".
template <typename Call>
std::string error_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return fmt::format("{}: {}", to_string(error.code()), error.what());
    }
    return "no error";
}

TEST(Pooler, result_does_not_depend_on_threads_or_earlier_calls) {
    const std::vector<float> rows = generated_rows(500, small.hidden);
    Pooler pooler(generated_weights(small));
    const PoolResult one = pooler.pool(500, rows_of(rows, small.hidden));
    pooler.pool(3, rows_of(rows, small.hidden));
    for (const int threads : {2, 3, 7, 1, 0}) {
        pooler.set_threads(threads);
        const PoolResult again = pooler.pool(500, rows_of(rows, small.hidden));
        EXPECT_EQ(again.soft_prompt, one.soft_prompt) << threads;
        EXPECT_EQ(again.mass, one.mass) << threads;
    }
}

TEST(Pooler, vectors_have_the_length_of_out_scale) {
    const std::vector<float> rows = generated_rows(9, small.hidden);
    const PoolResult result = Pooler(generated_weights(small, -2.5F)).pool(9, rows_of(rows, small.hidden));
    for (size_t i = 0; i < small.n_sp; ++i) {
        double square = 0.0;
        for (size_t k = 0; k < small.hidden; ++k) {
            const double x = result.soft_prompt[i * small.hidden + k];
            square += x * x;
        }
        EXPECT_NEAR(std::sqrt(square), 2.5, 1e-6);
    }
}

TEST(Pooler, scratch_memory_does_not_grow_with_the_past) {
    const std::vector<float> rows = generated_rows(5000, small.hidden);
    Pooler pooler(generated_weights(small));
    const size_t before = pooler.scratch_bytes();
    pooler.pool(5000, rows_of(rows, small.hidden));
    EXPECT_EQ(pooler.scratch_bytes(), before);
    EXPECT_GT(before, size_t{0});
}

TEST(Pooler, reads_every_row_once_a_layer_in_order) {
    const std::vector<float> rows = generated_rows(333, small.hidden);
    std::vector<size_t> seen;
    Pooler pooler(generated_weights(small), 2);
    pooler.pool(333, [&](size_t first, size_t count, float* out) {
        EXPECT_LE(count, size_t{16});
        for (size_t i = 0; i < count; ++i) {
            seen.push_back(first + i);
        }
        rows_of(rows, small.hidden)(first, count, out);
    });
    ASSERT_EQ(seen.size(), size_t{333} * small.layers);
    for (size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i], i % 333);
    }
}

TEST(Pooler, an_empty_past_is_refused) {
    Pooler pooler(generated_weights(small));
    EXPECT_EQ(error_of([&] { pooler.pool(0, [](size_t, size_t, float*) {}); }),
              "invalid_argument: pooling an empty past: leave the soft prompt out instead");
}

TEST(Pooler, a_row_that_is_not_finite_is_named_and_the_pooler_stays_usable) {
    const std::vector<float> rows = generated_rows(200, small.hidden);
    std::vector<float> broken = rows;
    for (const int threads : {1, 2}) {
        Pooler pooler(generated_weights(small), threads);
        const PoolResult good = pooler.pool(200, rows_of(rows, small.hidden));
        for (const float bad :
             {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
            broken[150 * small.hidden + 47] = bad;
            EXPECT_NE(
                error_of([&] {
                    pooler.pool(200, rows_of(broken, small.hidden));
                }).find("invalid_argument: the embedding of kept token 150 holds a value that is not finite"),
                std::string::npos);
        }
        EXPECT_EQ(pooler.pool(200, rows_of(rows, small.hidden)).soft_prompt, good.soft_prompt);
    }
}

TEST(Pooler, what_the_row_provider_throws_reaches_the_caller) {
    Pooler pooler(generated_weights(small), 3);
    const auto failing = [](size_t first, size_t, float* out) {
        std::fill_n(out, 16 * small.hidden, 0.0F);
        if (first >= 96) {
            throw std::runtime_error("row provider");
        }
    };
    EXPECT_THROW(pooler.pool(300, failing), std::runtime_error);
}

TEST(Pooler, weights_are_checked) {
    PoolerWeights weights = generated_weights(small);
    weights.tensors.erase("ln_out.bias");
    EXPECT_NE(
        error_of([&] { Pooler pooler(weights); }).find("bad_file: pooler: the tensor 'ln_out.bias' [48]"),
        std::string::npos);
}

TEST(Pooler, weights_that_overflow_float32_are_an_error_not_nan) {
    PoolerWeights weights = generated_weights(small);
    for (float& x : weights.tensors["blocks.1.ffn.2.bias"]) {
        x = 3e38F;
    }
    const std::vector<float> rows = generated_rows(5, small.hidden);
    Pooler pooler(std::move(weights));
    EXPECT_NE(
        error_of([&] { pooler.pool(5, rows_of(rows, small.hidden)); }).find("bad_file: soft-prompt vector 0"),
        std::string::npos);
}

} // namespace
} // namespace spool::test
