// MLX affine 4-bit weights: codes, scales and biases in groups along the rows.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "formats/safetensors.h"

namespace spool {

/// `weight` uint32 [rows, cols/8], first column in the low 4 bits; scales and biases [rows, cols/group] (f16,
/// bf16 or f32); w = code * scale + bias, scales may be negative.
struct MlxMatrix {
    TensorView codes;
    TensorView scales;
    TensorView biases;
    int64_t rows = 0;
    int64_t cols = 0;
    int64_t group = 0;
};

/// The matrix stored as `name`.weight/.scales/.biases (or `name` itself with suffixes .scales and .biases),
/// or nothing if `name` is not quantised in this file. Throws Error{bad_file} if the three disagree.
std::optional<MlxMatrix> find_mlx_matrix(const SafetensorsFile& file, std::string_view name);

/// Row-major float32 [rows, cols].
std::vector<float> dequantize(const MlxMatrix& matrix);

/// GGUF Q4_1 blocks (32 columns: f16 scale d, f16 minimum m, 16 bytes of codes; w = code * d + m), bit-exact:
/// returned only if every scale and bias is exact in f16, else nothing.
std::optional<std::vector<std::byte>> to_q4_1(const MlxMatrix& matrix);

} // namespace spool
