// Strategy `slots`: memory written by the model itself. At a chunk's end m learned vectors are fed at the
// next positions, where they see pinned tokens, earlier slots and the whole window; only their cells outlive
// it.
#pragma once

#include "context/strategy.h"

namespace spool {

class SlotsStrategy : public Strategy {
  public:
    /// `count`: m, slots written at each compaction.
    SlotsStrategy(const MemorySettings& settings, uint32_t count) : Strategy(settings), count_(count) {}

    /// MQ + max-slots + m + rw + C: a new group is written before the oldest leaves.
    uint32_t peak_cells() const override;
    size_t next_compaction(size_t raw_length) const override;
    Compaction compact(Transcript& transcript, SequenceId sequence, Workspace& workspace) const override;

  private:
    uint32_t count_;
};

} // namespace spool
