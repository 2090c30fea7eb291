// Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace spool {

/// Calls work(i) once for every i in [0, count), on up to `threads` threads of its own (1: on the caller's).
/// Returns when all are done. If some throw, the others' remaining work is skipped and the first exception
/// is thrown again.
void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& work);

} // namespace spool
