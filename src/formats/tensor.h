// The tensors that safetensors, pickle and MLX files hold: a name, a type, a shape, bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spool {

enum class DType { f64, f32, f16, bf16, i64, i32, i16, i8, u32, u16, u8, boolean };

size_t dtype_size(DType dtype);
std::string_view dtype_name(DType dtype);
/// Bytes of a tensor of that shape; nothing if a dimension is negative or 64 bits do not hold the size.
std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape);

/// A view of one tensor inside a file that outlives it. Row-major; `shape` as PyTorch prints it, outermost
/// dimension first. `data.size()` is always the product of the shape times dtype_size(dtype).
struct TensorView {
    std::string name;
    DType dtype = DType::f32;
    std::vector<int64_t> shape;
    std::span<const std::byte> data;

    size_t elements() const;
};

/// The elements as float32. Throws Error{unsupported} for integer and boolean types, naming the tensor.
std::vector<float> to_float(const TensorView& tensor);

/// "[1536, 2048]".
std::string shape_string(std::span<const int64_t> shape);

} // namespace spool
