// The one matrix product of the pooler: a matrix times panels of queries.
#pragma once

#include <cstddef>

#include "pooler/lanes.h"

namespace spool::pooler {

/// A matrix [rows, depth] read in place: element (r, k) is data[r * row_stride + k * depth_stride]. One of
/// the two strides is 1.
struct MatrixView {
    const float* data = nullptr;
    size_t row_stride = 0;
    size_t depth_stride = 1;
};

/// Panel p of `b` starts at b + p * b_stride and has `depth` elements; panel p of `c` starts at c + p *
/// c_stride and has `rows`.
struct Product {
    MatrixView a;
    size_t rows = 0;
    size_t depth = 0;
    size_t panels = 1;
    const Lanes* b = nullptr;
    size_t b_stride = 0;
    Lanes* c = nullptr;
    size_t c_stride = 0;
    bool accumulate = false; ///< add to c instead of overwriting it
};

/// c[p][r] (+)= sum over k of a(r, k) * b[p][k]
void multiply(const Product& product);

} // namespace spool::pooler
