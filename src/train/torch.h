// The one place that includes LibTorch's headers, trimmed to what the trainer uses.
#pragma once

#include <ATen/ATen.h>
#include <optional>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

namespace spool::train {

using at::Tensor;

/// An undefined tensor as nothing: what nodes of the graph take as an argument that may be absent.
inline std::optional<Tensor> present(const Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

} // namespace spool::train
