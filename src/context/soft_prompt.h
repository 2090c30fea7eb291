// Strategy `soft-prompt`: what leaves the window goes to the distant buffer, the pooler squeezes the buffer
// into n_sp vectors, and the model reads them between the pinned tokens and the window.
#pragma once

#include "context/strategy.h"

namespace spool {

class SoftPromptStrategy : public Strategy {
  public:
    /// `n_sp`: vectors the pooler makes.
    SoftPromptStrategy(const MemorySettings& settings, uint32_t n_sp) : Strategy(settings), n_sp_(n_sp) {}

    /// carry: MQ + 2 n_sp + rw + C (old and new vectors exist side by side for a moment); rebuild: MQ + n_sp
    /// + rw + C.
    uint32_t peak_cells() const override;
    /// carry: the first compaction waits until more than n_sp tokens have left the window, since the vectors
    /// take the positions of the last n_sp of them.
    size_t next_compaction(size_t raw_length) const override;
    Compaction compact(Transcript& transcript, SequenceId sequence, Workspace& workspace) const override;

  private:
    uint32_t n_sp_;
};

} // namespace spool
