#include <ggml.h>
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "formats/mlx.h"
#include "support/data.h"
#include "support/expect_error.h"

namespace spool {
namespace {

using test::expect_error;

class Mlx : public ::testing::Test {
  protected:
    MlxMatrix matrix(std::string_view name) const {
        auto found = find_mlx_matrix(file_, name);
        if (!found) {
            throw std::runtime_error("not quantised: " + std::string(name));
        }
        return std::move(*found);
    }

    SafetensorsFile file_{test::fixture("formats/data/mlx.safetensors")};
    std::vector<float> expected_ = to_float(file_.at("expected"));
};

TEST_F(Mlx, codes_scales_and_biases_give_numpys_values) {
    const MlxMatrix half = matrix("half");
    EXPECT_EQ(half.rows, 6);
    EXPECT_EQ(half.cols, 192);
    EXPECT_EQ(half.group, 64);
    EXPECT_EQ(dequantize(half), expected_);
}

TEST_F(Mlx, a_matrix_may_carry_its_own_name_and_bf16_scales) {
    EXPECT_EQ(dequantize(matrix("blocks.0.ffn.0.weight")), expected_);
}

TEST_F(Mlx, q4_1_blocks_dequantise_to_the_same_values) {
    for (const char* name : {"half", "blocks.0.ffn.0.weight"}) {
        const auto blocks = to_q4_1(matrix(name)).value_or(std::vector<std::byte>{});
        ASSERT_EQ(blocks.size(), ggml_row_size(GGML_TYPE_Q4_1, 192) * 6);
        const GgufTensor tensor{.name = name, .type = GGML_TYPE_Q4_1, .ne = {192, 6}, .data = blocks};
        EXPECT_EQ(to_float(tensor), expected_) << name;
    }
}

TEST_F(Mlx, scales_that_are_no_float16_give_no_q4_1) {
    EXPECT_EQ(to_q4_1(matrix("tiny")), std::nullopt);
    EXPECT_EQ(to_q4_1(matrix("third")), std::nullopt);
    const auto third = dequantize(matrix("third"));
    EXPECT_NE(third[0], expected_[0]);
    EXPECT_TRUE(std::equal(third.begin() + 64, third.end(), expected_.begin() + 64));
}

TEST_F(Mlx, a_plain_matrix_is_not_quantised) {
    EXPECT_FALSE(find_mlx_matrix(file_, "plain").has_value());
    EXPECT_FALSE(find_mlx_matrix(file_, "absent").has_value());
}

TEST_F(Mlx, parts_that_disagree_are_refused_by_name) {
    expect_error(ErrorCode::bad_file, {"mlx.safetensors", "no_biases.biases"}, [&] { matrix("no_biases"); });
    expect_error(ErrorCode::bad_file, {"bad_rows.weight", "[6, 24]", "[5, 3]"}, [&] { matrix("bad_rows"); });
    expect_error(ErrorCode::bad_file, {"bad_group.weight", "192 columns"}, [&] { matrix("bad_group"); });
}

} // namespace
} // namespace spool
