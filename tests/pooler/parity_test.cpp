// The pooler against torch.nn.MultiheadAttention at the reference shape (data/make_goldens.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "formats/safetensors.h"
#include "pooler/compare.h"
#include "pooler/generated.h"
#include "support/data.h"

namespace spool::test {
namespace {

class PoolerParity : public testing::TestWithParam<size_t> {
  protected:
    static constexpr PoolerShape reference_shape{
        .hidden = 1536, .n_sp = 32, .heads = 8, .layers = 3, .ffn = 2048};

    static void SetUpTestSuite() {
        pooler_ = std::make_unique<Pooler>(generated_weights(reference_shape), 2);
    }
    static void TearDownTestSuite() { pooler_.reset(); }

    static std::vector<float> stored_columns(const std::vector<float>& soft_prompt, size_t length) {
        if (length == 4096) {
            return soft_prompt;
        }
        std::vector<float> kept;
        for (size_t i = 0; i < soft_prompt.size(); ++i) {
            if ((i / reference_shape.hidden + i % reference_shape.hidden) % 4 == 0) {
                kept.push_back(soft_prompt[i]);
            }
        }
        return kept;
    }

    static inline std::unique_ptr<Pooler> pooler_;
};

TEST_P(PoolerParity, matches_torch_at_the_reference_shape) {
    const size_t length = GetParam();
    const SafetensorsFile goldens(fixture("pooler/data/goldens.safetensors"));
    const std::vector<float> soft_prompt = to_float(goldens.at("soft_prompt." + std::to_string(length)));
    const std::vector<float> mass = to_float(goldens.at("mass." + std::to_string(length)));

    const std::vector<float> rows = generated_rows(length, reference_shape.hidden);
    const PoolResult result = pooler_->pool(length, rows_of(rows, reference_shape.hidden));
    const std::vector<float> found = stored_columns(result.soft_prompt, length);

    ASSERT_EQ(found.size(), soft_prompt.size());
    ASSERT_EQ(result.mass.size(), mass.size());
    RecordProperty("soft_prompt_max_difference", fmt::format("{:.3g}", max_difference(found, soft_prompt)));
    RecordProperty("mass_max_relative", fmt::format("{:.3g}", max_relative_difference(result.mass, mass)));
    EXPECT_LE(max_difference(found, soft_prompt), 1e-6);
    EXPECT_LE(max_relative_difference(result.mass, mass), 1e-5);
    EXPECT_LE(top_half_disagreement(result.mass, mass), 1e-6);
    if (length > 2) {
        EXPECT_GT(correlation(result.mass, mass), 1.0 - 5e-7);
    }
}

INSTANTIATE_TEST_SUITE_P(lengths, PoolerParity, testing::Values(1, 2, 31, 576, 4096));

} // namespace
} // namespace spool::test
