// The one place that includes LibTorch's headers, trimmed to what the trainer uses.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

namespace spool::train {

using at::Tensor;

} // namespace spool::train
