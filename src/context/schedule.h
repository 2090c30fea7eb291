// When compactions happen and when positions must be re-based: the rules all strategies share.
#pragma once

#include <chrono>
#include <cstddef>

#include "context/settings.h"
#include "context/transcript.h"

namespace spool {

/// The smallest multiple of `chunk` above both `raw_length` and `idle`, the longest raw length at which there
/// is nothing to do.
size_t next_boundary(size_t raw_length, size_t chunk, size_t idle);

/// True if the tokens of the next chunk would reach settings.max_position.
bool must_rebase(const Transcript& transcript, const MemorySettings& settings);

class Stopwatch {
  public:
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now();
};

} // namespace spool
