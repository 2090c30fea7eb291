// Data-parallel training: this process's place among those that torchrun, or whoever sets its variables,
// started.
#pragma once

#include <memory>
#include <vector>

#include "train/torch.h"

namespace spool::train {

class Workers {
  public:
    /// From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; one process on its own where WORLD_SIZE is not set
    /// or 1. Waits until all have come. Throws Error{invalid_argument} naming a variable that is missing or
    /// makes no sense, Error{io} if the others do not answer.
    static Workers from_environment();

    Workers();
    Workers(Workers&&) noexcept;
    ~Workers();

    int rank() const { return rank_; }
    int size() const { return size_; }
    /// The one that writes files and talks.
    bool leads() const { return rank_ == 0; }

    /// Each tensor becomes its sum over all processes, bit for bit the same in all. All call this in the same
    /// order with tensors of the same sizes. Throws Error{io} if one has gone.
    void sum(const std::vector<Tensor>& tensors) const;

  private:
    struct Group;
    int rank_ = 0;
    int size_ = 1;
    std::unique_ptr<Group> group_;
};

} // namespace spool::train
