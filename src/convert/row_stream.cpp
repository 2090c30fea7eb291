#include "convert/row_stream.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include <ggml.h>

#include "core/error.h"

namespace spool {

namespace {

constexpr int64_t block_values = int64_t{1} << 18; // 1 MiB of float32 at a time
constexpr float f16_max = 65504.0F;

/// Rows [first, first + count) of the destination, as float32.
using ReadRows = std::function<std::vector<float>(int64_t first, int64_t count)>;

void check_values(const std::string& source, ggml_type type, const std::vector<float>& values) {
    for (const float value : values) {
        if (!std::isfinite(value)) {
            fail(ErrorCode::bad_file, "{}: holds {}, which is not a finite number; the file is damaged",
                 source, value);
        }
        if (type == GGML_TYPE_F16 && std::abs(value) > f16_max) {
            fail(ErrorCode::unsupported, "{}: {} is beyond the range of f16; choose f32 or bf16", source,
                 value);
        }
    }
}

template <typename Visit>
void for_each_block(int64_t rows, int64_t cols, Visit visit) {
    const int64_t step = std::max<int64_t>(1, block_values / std::max<int64_t>(1, cols));
    for (int64_t first = 0; first < rows; first += step) {
        visit(first, std::min(step, rows - first));
    }
}

GgufProducer convert_blocks(std::string source, int64_t rows, int64_t cols, ggml_type type, ReadRows read) {
    return [=, source = std::move(source), read = std::move(read)](const GgufSink& sink) {
        for_each_block(rows, cols, [&](int64_t first, int64_t count) {
            const auto values = read(first, count);
            check_values(source, type, values);
            sink(quantize(type, values, cols));
        });
    };
}

/// Rows of one block, copied out of the file where they are not in order.
class BlockView {
  public:
    BlockView(const TensorView& tensor, const RowOrder& order, int64_t first, int64_t count) : view_(tensor) {
        const auto begin = static_cast<size_t>(first);
        const auto rows = static_cast<size_t>(count);
        const size_t row_bytes = tensor.data.size() / static_cast<size_t>(tensor.shape.at(0));
        view_.shape.at(0) = count;
        if (order.empty()) {
            view_.data = tensor.data.subspan(begin * row_bytes, rows * row_bytes);
            return;
        }
        copy_.reserve(rows * row_bytes);
        for (const int64_t row : std::span(order).subspan(begin, rows)) {
            const auto bytes = tensor.data.subspan(static_cast<size_t>(row) * row_bytes, row_bytes);
            copy_.insert(copy_.end(), bytes.begin(), bytes.end());
        }
        view_.data = copy_;
    }
    ~BlockView() = default;
    BlockView(const BlockView&) = delete;
    BlockView& operator=(const BlockView&) = delete;

    const TensorView& view() const { return view_; }

  private:
    std::vector<std::byte> copy_;
    TensorView view_;
};

int64_t columns(const TensorView& tensor) {
    return tensor.shape.at(0) == 0 ? 1 : static_cast<int64_t>(tensor.elements()) / tensor.shape.at(0);
}

/// Calls use(block) with rows [first, first + count) of `matrix`.
template <typename Use>
auto with_block(const MlxMatrix& matrix, const RowOrder& order, int64_t first, int64_t count, Use use) {
    const BlockView codes(matrix.codes, order, first, count);
    const BlockView scales(matrix.scales, order, first, count);
    const BlockView biases(matrix.biases, order, first, count);
    return use(MlxMatrix{.codes = codes.view(),
                         .scales = scales.view(),
                         .biases = biases.view(),
                         .rows = count,
                         .cols = matrix.cols,
                         .group = matrix.group});
}

bool exact_in_f16(const TensorView& tensor) {
    if (tensor.dtype == DType::f16) {
        return true;
    }
    return std::ranges::all_of(
        to_float(tensor), [](float value) { return ggml_fp16_to_fp32(ggml_fp32_to_fp16(value)) == value; });
}

} // namespace

GgufProducer stream_rows(std::string source, TensorView tensor, ggml_type type, RowOrder order) {
    const int64_t rows = tensor.shape.at(0);
    const int64_t cols = columns(tensor);
    return convert_blocks(
        std::move(source), rows, cols, type,
        [tensor = std::move(tensor), order = std::move(order)](int64_t first, int64_t count) {
            return to_float(BlockView(tensor, order, first, count).view());
        });
}

GgufProducer stream_rows(std::string source, GgufTensor tensor, ggml_type type) {
    const int64_t cols = tensor.ne.empty() ? 1 : tensor.ne.front();
    const int64_t rows = cols == 0 ? 0 : tensor.elements() / cols;
    const size_t row_bytes = rows == 0 ? 0 : tensor.data.size() / static_cast<size_t>(rows);
    return convert_blocks(std::move(source), rows, cols, type,
                          [tensor = std::move(tensor), cols, row_bytes](int64_t first, int64_t count) {
                              GgufTensor block = tensor;
                              block.ne = {cols, count};
                              block.data = tensor.data.subspan(static_cast<size_t>(first) * row_bytes,
                                                               static_cast<size_t>(count) * row_bytes);
                              return to_float(block);
                          });
}

GgufProducer stream_rows(std::string source, MlxMatrix matrix, ggml_type type, RowOrder order) {
    if (type != GGML_TYPE_Q4_1) {
        const int64_t rows = matrix.rows;
        const int64_t cols = matrix.cols;
        return convert_blocks(
            std::move(source), rows, cols, type,
            [matrix = std::move(matrix), order = std::move(order)](int64_t first, int64_t count) {
                return with_block(matrix, order, first, count,
                                  [](const MlxMatrix& block) { return dequantize(block); });
            });
    }
    return [source = std::move(source), matrix = std::move(matrix), order = std::move(order),
            type](const GgufSink& sink) {
        for_each_block(matrix.rows, matrix.cols, [&](int64_t first, int64_t count) {
            const auto blocks = with_block(matrix, order, first, count, [&](const MlxMatrix& block) {
                check_values(source, type, to_float(block.scales));
                check_values(source, type, to_float(block.biases));
                return to_q4_1(block);
            });
            if (!blocks) {
                fail(ErrorCode::internal, "{}: scales are not exact in f16 and were to be moved as Q4_1",
                     source);
            }
            sink(*blocks);
        });
    };
}

std::vector<std::byte> gather_rows(const TensorView& tensor, const RowOrder& order) {
    const BlockView rows(tensor, order, 0, tensor.shape.at(0));
    return {rows.view().data.begin(), rows.view().data.end()};
}

bool fits_q4_1(const MlxMatrix& matrix) { return exact_in_f16(matrix.scales) && exact_in_f16(matrix.biases); }

} // namespace spool
