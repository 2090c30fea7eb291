// The interface every way of holding the past implements, one file each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "llm/context.h"
#include "memory/settings.h"
#include "memory/slots_file.h"
#include "memory/transcript.h"
#include "pooler/pooler.h"

namespace spool {

/// What one compaction did.
struct Compaction {
    size_t length = 0; ///< tokens in the transcript at that moment
    size_t kept = 0; ///< distant tokens that memory holds afterwards: the buffer's, or those the slots are of
    size_t evicted = 0; ///< tokens dropped from it by this compaction
    size_t window = 0;  ///< R, raw tokens left in the cache
    double pool_seconds = 0;
    double refresh_seconds = 0; ///< decoding the vectors and, under rebuild, the window
    bool rebuilt = false;       ///< the window was prefilled again or positions were re-based
    /// Logits of the last token in the refreshed cache; empty where the cache was left as it was written.
    std::vector<float> logits;
};

/// What strategies work with; shared by all sessions of a context.
struct Workspace {
    Context& context;
    SequenceId scratch = 0;                          ///< a sequence no session uses, empty between calls
    Pooler* pooler = nullptr;                        ///< nullptr without one
    const TokenRows* rows = nullptr;                 ///< nullptr without a pooler
    std::span<const float> slots;                    ///< [m, width]; empty without slots
    const std::vector<float>* replacement = nullptr; ///< stands in for every soft prompt, if set
};

class Strategy {
  public:
    static constexpr size_t never = std::numeric_limits<size_t>::max();

    explicit Strategy(const MemorySettings& settings) : settings_(settings) {}
    virtual ~Strategy() = default;
    Strategy(const Strategy&) = delete;
    Strategy& operator=(const Strategy&) = delete;

    const MemorySettings& settings() const { return settings_; }

    /// The most KV cells one session ever uses, pinned tokens included.
    virtual uint32_t peak_cells() const = 0;
    /// The raw length (> `raw_length`) at which compact() must be called next; `never` if it need not be.
    virtual size_t next_compaction(size_t raw_length) const = 0;
    /// Brings transcript and cache of `sequence` to a window of settings().window tokens. Called exactly at
    /// the raw lengths that next_compaction() names, after the last token was decoded.
    virtual Compaction compact(Transcript& transcript, SequenceId sequence, Workspace& workspace) const = 0;

  protected:
    MemorySettings settings_;
};

/// Who writes memory: what the bundle has of it.
struct MemoryWriters {
    const PoolerShape* pooler = nullptr;
    const SlotsFile* slots = nullptr;
};

/// Checks `requested` against the model and what writes memory, and makes the strategy. Throws
/// Error{invalid_argument|incompatible|unsupported} with the reason and the way out.
std::unique_ptr<Strategy> make_strategy(const MemorySettings& requested, const Model& model,
                                        const MemoryWriters& writers);

} // namespace spool
