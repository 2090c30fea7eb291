#include "pooler/multiply.h"

#include <algorithm>

namespace spool::pooler {
namespace {

// tile_rows x 16 accumulators stay in registers; a depth block of b (16 KiB) stays in the first-level cache
// while all rows pass over it. Each block is summed from zero and then added to c: a long sum in float32
// loses less when its parts stay small.
constexpr size_t depth_block = 256;

template <size_t Rows, bool DepthContiguous>
void tile(const float* a, size_t stride, const Lanes* b, size_t depth, Lanes* c, bool accumulate) {
    Vector sums[Rows][part_count];
#pragma GCC unroll 16
    for (size_t row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
        for (size_t part = 0; part < part_count; ++part) {
            sums[row][part] = Vector{};
        }
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < depth; ++k) {
        const Lanes& column = b[k];
#pragma GCC unroll 16
        for (size_t row = 0; row < Rows; ++row) {
            const float factor = DepthContiguous ? a[row * stride + k] : a[k * stride + row];
#pragma GCC unroll 4
            for (size_t part = 0; part < part_count; ++part) {
                sums[row][part] += factor * column.part[part];
            }
        }
    }
#pragma GCC unroll 16
    for (size_t row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
        for (size_t part = 0; part < part_count; ++part) {
            c[row].part[part] = accumulate ? c[row].part[part] + sums[row][part] : sums[row][part];
        }
    }
}

template <bool DepthContiguous, size_t Rows = tile_rows>
void tile_of(size_t rows, const float* a, size_t stride, const Lanes* b, size_t depth, Lanes* c,
             bool accumulate) {
    if (rows == Rows) {
        tile<Rows, DepthContiguous>(a, stride, b, depth, c, accumulate);
    } else if constexpr (Rows > 1) {
        tile_of<DepthContiguous, Rows - 1>(rows, a, stride, b, depth, c, accumulate);
    }
}

template <bool DepthContiguous>
void multiply_blocks(const Product& product) {
    const MatrixView& a = product.a;
    const size_t stride = DepthContiguous ? a.row_stride : a.depth_stride;
    for (size_t k = 0; k < product.depth; k += depth_block) {
        const size_t depth = std::min(depth_block, product.depth - k);
        for (size_t row = 0; row < product.rows; row += tile_rows) {
            const float* block = a.data + row * a.row_stride + k * a.depth_stride;
            for (size_t panel = 0; panel < product.panels; ++panel) {
                tile_of<DepthContiguous>(std::min(tile_rows, product.rows - row), block, stride,
                                         product.b + panel * product.b_stride + k, depth,
                                         product.c + panel * product.c_stride + row,
                                         product.accumulate || k > 0);
            }
        }
    }
}

} // namespace

void multiply(const Product& product) {
    if (product.a.depth_stride == 1) {
        multiply_blocks<true>(product);
    } else {
        multiply_blocks<false>(product);
    }
}

} // namespace spool::pooler
