// NF4, the 4-bit type of QLoRA (arXiv:2305.14314): a block's values divided by its largest magnitude, each
// rounded to the nearest of sixteen quantiles of the normal distribution.
#pragma once

#include <cstdint>

#include "train/torch.h"

namespace spool::train {

/// A matrix in four bits. With `nested` scales (double quantisation) a block's scale is itself an unsigned
/// 8-bit code: scale = nested_offset + code * nested_step of its group of 256.
struct PackedWeight : torch::CustomClassHolder {
    Tensor codes;  ///< uint8 [elements/2], the first element in the high four bits
    Tensor scales; ///< float32 [elements/block], or uint8 codes if nested
    Tensor nested_step;
    double nested_offset = 0;
    int64_t rows = 0;
    int64_t columns = 0;
    int64_t block = 64;

    /// Bytes held.
    int64_t bytes() const;
};

/// `weight` float32 [rows, columns]; elements must be a multiple of `block`, else Error{invalid_argument}.
c10::intrusive_ptr<PackedWeight> pack_nf4(const Tensor& weight, int64_t block = 64, bool nested = false);

/// float32 [rows, columns].
Tensor unpack(const PackedWeight& packed);

} // namespace spool::train
