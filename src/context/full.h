// Strategy `full`: nothing is evicted. The reference, and plain llama.cpp behaviour.
#pragma once

#include "context/strategy.h"

namespace spool {

class FullStrategy : public Strategy {
  public:
    using Strategy::Strategy;

    uint32_t peak_cells() const override { return settings_.full_length; }
    size_t next_compaction(size_t /*raw_length*/) const override { return never; }
    Compaction compact(Transcript& transcript, SequenceId sequence, Workspace& workspace) const override;
};

} // namespace spool
