// When compactions happen and when positions must be re-based: the rules all strategies share, in the engine
// and in training.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "memory/settings.h"
#include "memory/transcript.h"

namespace spool {

/// The smallest multiple of `chunk` above both `raw_length` and `idle`, the longest raw length at which there
/// is nothing to do.
size_t next_boundary(size_t raw_length, size_t chunk, size_t idle);

/// The longest raw length at which there is nothing to do: the window, and for `soft-prompt` under `carry` as
/// many tokens more as the vectors take positions.
size_t idle_length(const MemorySettings& settings, uint32_t n_sp);

/// One compaction of a text that is known from beginning to end.
struct PlannedCompaction {
    size_t raw_length = 0;      ///< raw tokens read before it
    size_t window_start = 0;    ///< w0: raw tokens before this one are distant
    std::vector<uint32_t> kept; ///< the distant buffer after it, as ascending raw indices
};

/// The masses of the distant tokens `kept` (raw indices), as many values.
using MassFunction = std::function<std::vector<float>(std::span<const uint32_t> kept)>;

/// What the engine does while it reads `raw_tokens` after the pinned ones: every compaction that still has a
/// token after it. Only `soft-prompt` keeps distant tokens; `mass` is asked only when they exceed
/// settings.max_distant.
std::vector<PlannedCompaction> plan_compactions(size_t raw_tokens, const MemorySettings& settings,
                                                uint32_t n_sp, const MassFunction& mass);

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
