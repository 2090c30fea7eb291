#include "context/full.h"

#include "core/error.h"

namespace spool {

Compaction FullStrategy::compact(Transcript& /*transcript*/, SequenceId /*sequence*/,
                                 Workspace& /*workspace*/) const {
    fail(ErrorCode::internal, "full never compacts");
}

} // namespace spool
