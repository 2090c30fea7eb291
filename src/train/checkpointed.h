// Activation checkpointing: memory for time.
#pragma once

#include <functional>

#include "train/torch.h"

namespace spool::train {

/// function(x), keeping only x: the backward pass runs the function again. Trained tensors inside `function`
/// get their gradients all the same, bit-equal to those without checkpointing. `function` must give the same
/// result each time, and what it refers to must outlive the graph.
Tensor checkpointed(const std::function<Tensor(const Tensor&)>& function, const Tensor& x);

} // namespace spool::train
