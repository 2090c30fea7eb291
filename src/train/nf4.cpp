#include "train/nf4.h"

#include <array>

#include "core/error.h"

namespace spool::train {

namespace {

/// QLoRA's appendix E: the quantiles, scaled to [-1, 1], with an exact zero.
constexpr std::array<float, 16> quantiles = {-1.0F,
                                             -0.6961928009986877F,
                                             -0.5250730514526367F,
                                             -0.39491748809814453F,
                                             -0.28444138169288635F,
                                             -0.18477343022823334F,
                                             -0.09105003625154495F,
                                             0.0F,
                                             0.07958029955625534F,
                                             0.16093020141124725F,
                                             0.24611230194568634F,
                                             0.33791524171829224F,
                                             0.44070982933044434F,
                                             0.5626170039176941F,
                                             0.7229568362236023F,
                                             1.0F};

constexpr int64_t scale_group = 256;

Tensor table(const at::TensorOptions& options) {
    return at::tensor(at::ArrayRef<float>(quantiles)).to(options);
}

Tensor block_scales(const PackedWeight& packed) {
    if (!packed.nested_step.defined()) {
        return packed.scales;
    }
    const int64_t count = packed.scales.numel();
    const Tensor step = packed.nested_step.repeat_interleave(scale_group).narrow(0, 0, count);
    return packed.scales.to(at::kFloat).mul_(step).add_(packed.nested_offset);
}

} // namespace

int64_t PackedWeight::bytes() const {
    const auto size = [](const Tensor& tensor) {
        return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
    };
    return size(codes) + size(scales) + size(nested_step);
}

c10::intrusive_ptr<PackedWeight> pack_nf4(const Tensor& weight, int64_t block, bool nested) {
    if (weight.dim() != 2 || weight.numel() % block != 0 || block % 2 != 0) {
        fail(ErrorCode::invalid_argument, "a matrix of {} values cannot be cut into NF4 blocks of {}",
             weight.numel(), block);
    }
    auto packed = c10::make_intrusive<PackedWeight>();
    packed->rows = weight.size(0);
    packed->columns = weight.size(1);
    packed->block = block;
    const Tensor blocks = weight.detach().to(at::kFloat).reshape({-1, block});
    packed->scales = blocks.abs().amax(1);
    if (nested) {
        const Tensor scales = packed->scales;
        const int64_t padded = (scales.numel() + scale_group - 1) / scale_group * scale_group;
        packed->nested_offset = scales.min().item<double>();
        const Tensor above =
            at::constant_pad_nd(scales - packed->nested_offset, {0, padded - scales.numel()});
        packed->nested_step = above.view({-1, scale_group}).amax(1).div_(255).clamp_min_(1e-12);
        packed->scales = above.view({-1, scale_group})
                             .div(packed->nested_step.unsqueeze(1))
                             .round_()
                             .clamp_(0, 255)
                             .to(at::kByte)
                             .flatten()
                             .narrow(0, 0, scales.numel())
                             .contiguous();
    }
    const Tensor scales = block_scales(*packed).clamp_min(1e-12);
    // The nearest quantile: the number of midpoints below the value.
    const Tensor levels = table(blocks.options());
    const Tensor midpoints = (levels.slice(0, 1) + levels.slice(0, 0, 15)).div_(2);
    const Tensor codes =
        at::bucketize((blocks / scales.unsqueeze(1)).flatten(), midpoints).to(at::kByte).view({-1, 2});
    packed->codes = codes.select(1, 0).mul(16).add(codes.select(1, 1)).contiguous();
    return packed;
}

Tensor unpack(const PackedWeight& packed) {
    const Tensor levels = table(packed.codes.options().dtype(at::kFloat));
    const Tensor high = packed.codes.bitwise_right_shift(4);
    const Tensor low = packed.codes.bitwise_and(15);
    const Tensor codes = at::stack({high, low}, 1).flatten().to(at::kInt);
    return levels.index_select(0, codes)
        .view({-1, packed.block})
        .mul_(block_scales(packed).unsqueeze(1))
        .view({packed.rows, packed.columns});
}

} // namespace spool::train
