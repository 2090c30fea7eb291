// Strategy `window`: pinned tokens and the window stay, the rest is dropped. What most tools do, and the
// floor of every evaluation.
#pragma once

#include "context/strategy.h"

namespace spool {

class WindowStrategy : public Strategy {
  public:
    using Strategy::Strategy;

    /// MQ + rw + C.
    uint32_t peak_cells() const override;
    size_t next_compaction(size_t raw_length) const override;
    Compaction compact(Transcript& transcript, SequenceId sequence, Workspace& workspace) const override;
};

} // namespace spool
