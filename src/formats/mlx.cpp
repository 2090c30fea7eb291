#include "formats/mlx.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include <ggml.h>

#include "core/error.h"
#include "formats/byte_reader.h"

namespace spool {

namespace {

constexpr int64_t codes_per_word = 8;
constexpr int64_t block = 32; // columns of a Q4_1 block
constexpr size_t q4_1_size = 2 + 2 + block / 2;

bool holds_floats(const TensorView& tensor) {
    return tensor.dtype == DType::f16 || tensor.dtype == DType::bf16 || tensor.dtype == DType::f32;
}

std::string describe(const TensorView& tensor) {
    return fmt::format("'{}' ({} {})", printable(tensor.name), dtype_name(tensor.dtype),
                       shape_string(tensor.shape));
}

/// The shapes as checked by find_mlx_matrix: [rows, cols/8] and twice [rows, cols/group].
bool shapes_agree(const MlxMatrix& m) {
    const auto& codes = m.codes.shape;
    const auto& scales = m.scales.shape;
    if (m.codes.dtype != DType::u32 || codes.size() != 2 || scales.size() != 2 || scales != m.biases.shape) {
        return false;
    }
    return holds_floats(m.scales) && holds_floats(m.biases) && codes[0] == scales[0] && codes[1] > 0 &&
           scales[1] > 0 && codes[1] % scales[1] == 0;
}

/// The 32 codes of block `index`, counted along the rows.
std::array<uint8_t, block> block_codes(const MlxMatrix& matrix, size_t index) {
    std::array<uint32_t, block / codes_per_word> words{};
    std::memcpy(words.data(), matrix.codes.data.data() + index * sizeof(words), sizeof(words));
    std::array<uint8_t, block> codes{};
    for (size_t i = 0; i < codes.size(); ++i) {
        codes[i] = static_cast<uint8_t>((words[i / codes_per_word] >> (4 * (i % codes_per_word))) & 0xFU);
    }
    return codes;
}

size_t block_count(const MlxMatrix& matrix) {
    return static_cast<size_t>(matrix.rows * (matrix.cols / block));
}

/// `values` in f16, or nothing if one of them is not exact.
std::optional<std::vector<ggml_fp16_t>> exact_halves(const std::vector<float>& values) {
    std::vector<ggml_fp16_t> halves(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
        halves[i] = ggml_fp32_to_fp16(values[i]);
        if (std::bit_cast<uint32_t>(ggml_fp16_to_fp32(halves[i])) != std::bit_cast<uint32_t>(values[i])) {
            return std::nullopt;
        }
    }
    return halves;
}

} // namespace

std::optional<MlxMatrix> find_mlx_matrix(const SafetensorsFile& file, std::string_view name) {
    const std::string base(name);
    const TensorView* scales = file.find(base + ".scales");
    if (scales == nullptr) {
        return std::nullopt;
    }
    const TensorView* codes = file.find(base + ".weight");
    if (codes == nullptr) {
        codes = &file.at(base);
    }
    MlxMatrix matrix{.codes = *codes, .scales = *scales, .biases = file.at(base + ".biases")};
    if (!shapes_agree(matrix)) {
        fail(
            ErrorCode::bad_file,
            "{}: {}, {} and {} do not make an MLX 4-bit matrix: expected u32 [rows, cols/8] and twice floats "
            "[rows, cols/group]",
            file.path().string(), describe(*codes), describe(*scales), describe(matrix.biases));
    }
    matrix.rows = codes->shape[0];
    matrix.cols = codes->shape[1] * codes_per_word;
    matrix.group = matrix.cols / scales->shape[1];
    if (matrix.group != 32 && matrix.group != 64 && matrix.group != 128) {
        fail(ErrorCode::bad_file, "{}: {} has groups of {} columns, expected 32, 64 or 128; is it 4-bit?",
             file.path().string(), describe(*codes), matrix.group);
    }
    return matrix;
}

std::vector<float> dequantize(const MlxMatrix& matrix) {
    const std::vector<float> scales = to_float(matrix.scales);
    const std::vector<float> biases = to_float(matrix.biases);
    const auto blocks_per_group = static_cast<size_t>(matrix.group / block);
    std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.cols));
    for (size_t b = 0; b < block_count(matrix); ++b) {
        const float scale = scales[b / blocks_per_group];
        const float bias = biases[b / blocks_per_group];
        float* out = values.data() + b * block;
        for (const uint8_t code : block_codes(matrix, b)) {
            *out++ = static_cast<float>(code) * scale + bias;
        }
    }
    return values;
}

std::optional<std::vector<std::byte>> to_q4_1(const MlxMatrix& matrix) {
    const auto scales = exact_halves(to_float(matrix.scales));
    const auto biases = exact_halves(to_float(matrix.biases));
    if (!scales || !biases) {
        return std::nullopt;
    }
    const auto blocks_per_group = static_cast<size_t>(matrix.group / block);
    std::vector<std::byte> bytes(block_count(matrix) * q4_1_size);
    for (size_t b = 0; b < block_count(matrix); ++b) {
        std::byte* out = bytes.data() + b * q4_1_size;
        std::memcpy(out, &(*scales)[b / blocks_per_group], sizeof(ggml_fp16_t));
        std::memcpy(out + 2, &(*biases)[b / blocks_per_group], sizeof(ggml_fp16_t));
        const auto codes = block_codes(matrix, b);
        for (size_t i = 0; i < block / 2; ++i) {
            out[4 + i] = static_cast<std::byte>(codes[i] | (codes[i + block / 2] << 4));
        }
    }
    return bytes;
}

} // namespace spool
