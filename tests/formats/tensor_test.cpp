#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "formats/tensor.h"
#include "support/expect_error.h"

namespace spool {
namespace {

template <typename T>
std::vector<float> floats(DType dtype, const std::vector<T>& elements) {
    // One byte in, so that nothing is aligned: files promise no more.
    std::vector<std::byte> bytes(1 + elements.size() * sizeof(T));
    std::copy_n(reinterpret_cast<const std::byte*>(elements.data()), bytes.size() - 1, bytes.begin() + 1);
    return to_float(TensorView{.name = "t",
                               .dtype = dtype,
                               .shape = {static_cast<int64_t>(elements.size())},
                               .data = std::span(bytes).subspan(1)});
}

TEST(Tensor, every_floating_type_becomes_float32_from_unaligned_bytes) {
    const std::vector<float> expected = {1.0F, -2.5F, 0.0F};
    EXPECT_EQ(floats(DType::f64, std::vector<double>{1.0, -2.5, 0.0}), expected);
    EXPECT_EQ(floats(DType::f32, expected), expected);
    EXPECT_EQ(floats(DType::f16, std::vector<uint16_t>{0x3C00, 0xC100, 0}), expected);
    EXPECT_EQ(floats(DType::bf16, std::vector<uint16_t>{0x3F80, 0xC020, 0}), expected);
}

TEST(Tensor, integers_are_refused_by_the_tensors_name) {
    test::expect_error(ErrorCode::unsupported, {"'t'", "i64"},
                       [] { floats(DType::i64, std::vector<int64_t>{1}); });
}

TEST(Tensor, sizes_are_the_shapes_product_and_never_wrap) {
    using Shape = std::vector<int64_t>;
    EXPECT_EQ(tensor_bytes(DType::f32, Shape{}), 4U);
    EXPECT_EQ(tensor_bytes(DType::f16, Shape{3, 5}), 30U);
    EXPECT_EQ(tensor_bytes(DType::f32, Shape{3, 0}), 0U);
    EXPECT_EQ(tensor_bytes(DType::f32, Shape{-1}), std::nullopt);
    EXPECT_EQ(tensor_bytes(DType::f32, Shape{0, -1}), std::nullopt);
    EXPECT_EQ(tensor_bytes(DType::u8, Shape{std::numeric_limits<int64_t>::max(), 4}), std::nullopt);
}

TEST(Tensor, shapes_print_as_pytorch_prints_them) {
    EXPECT_EQ(shape_string(std::array<int64_t, 2>{1536, 2048}), "[1536, 2048]");
    EXPECT_EQ(shape_string({}), "[]");
}

} // namespace
} // namespace spool
