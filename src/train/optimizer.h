// AdamW (arXiv:1711.05101), with its state in float32 or, block by block, in 8 bits (arXiv:2110.02861).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "train/torch.h"

namespace spool::train {

struct AdamOptions {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;
    bool eight_bit = false; ///< tensors under 4,096 elements keep float32 state all the same
};

/// Parameters that share a learning rate. Tensors are leaves; those without a gradient are left alone.
struct ParameterGroup {
    std::vector<std::pair<std::string, Tensor>> parameters;
    double lr = 1e-3;
};

class Adam {
  public:
    Adam(std::vector<ParameterGroup> groups, const AdamOptions& options);

    /// One update with every group's rate times `factor`, then forgets the gradients.
    void step(double factor);
    /// Scales all gradients so that their joint norm is at most `limit` (0: no limit) and returns the norm
    /// before.
    double clip(double limit);

    /// Everything a resumed run needs, by name: "PARAMETER/m", "PARAMETER/v", "PARAMETER/steps" and, in 8
    /// bits, their scales. The tensors are the live ones.
    std::map<std::string, Tensor> state() const;
    /// Takes over what state() gave. Throws Error{bad_file} naming a tensor that is missing or of another
    /// shape.
    void load(const std::map<std::string, Tensor>& state);

  private:
    struct Slot {
        std::string name;
        Tensor parameter;
        double lr = 0;
        Tensor m{};
        Tensor v{};
        Tensor steps{};
        Tensor m_scale{}; ///< 8 bits only: the largest magnitude of each block of 256
        Tensor v_scale{};
    };
    void step_float(const std::vector<Slot*>& slots, double factor) const;
    void step_eight_bit(Slot& slot, double factor) const;

    AdamOptions options_;
    std::vector<Slot> slots_;
};

/// Block-wise dynamic quantisation: 8-bit codes into a table of values in [-1, 1] (or [0, 1]) whose steps
/// grow with the value, times the block's largest magnitude.
struct DynamicCodes {
    Tensor codes;  ///< uint8, the tensor's shape
    Tensor scales; ///< float32 [ceil(elements/256)]
};
DynamicCodes quantize_dynamic(const Tensor& values, bool with_sign);
Tensor dequantize_dynamic(const Tensor& codes, const Tensor& scales, bool with_sign);

} // namespace spool::train
