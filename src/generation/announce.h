// The promise made before a run starts: how much memory it will use, however long it goes on.
#pragma once

#include <cstddef>

#include "context/session.h"

namespace spool {

/// Prints what `pool` reserved, part by part, and an upper bound of the process's resident memory; returns
/// the bound in bytes. `copies`: of one session's state, to go back to or to save, that there are at a time
/// at most. `others`: bytes that other parts of the program have yet to touch, an embedder for one. Call
/// once, after all of them and the pool's sessions exist and before anything is read.
size_t announce_memory(SessionPool& pool, size_t copies, size_t others = 0);

} // namespace spool
