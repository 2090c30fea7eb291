// Instrumentation: what every compaction did, and what the whole run came to.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "context/session.h"
#include "core/json.h"

namespace spool {

struct MeterSummary {
    size_t tokens = 0;            ///< generated
    double tokens_per_second = 0; ///< generated, compactions included
    size_t prompt_tokens = 0;
    double prompt_seconds = 0;
    size_t compactions = 0;
    size_t rebuilds = 0;
    size_t max_kept = 0;    ///< the largest distant buffer
    double compression = 0; ///< max_kept / n_sp; 0 without a pooler
    size_t evicted = 0;
    double pool_seconds = 0;
    double refresh_seconds = 0;
    size_t kv_bytes = 0;
    uint32_t kv_cells = 0;
    size_t reserved_bytes = 0; ///< all that was announced at the start
    size_t peak_rss_bytes = 0;
};

class Meter {
  public:
    /// Listens to `session`'s compactions; both must outlive the meter's use.
    Meter(SessionPool& pool, Session& session);

    /// One JSON line a compaction, and a last one with the summary, go to `path` as they happen.
    void write_to(const std::filesystem::path& path);
    void prompt_done();
    void token_generated();

    MeterSummary summary() const;
    /// "1234 tok  56.7 tok/s  window 512  distant 576 -> 32 (18.0x)  evicted 0  KV 12.3 MiB"
    std::string line() const;
    /// Ends the file with the summary.
    void finish();

  private:
    using Clock = std::chrono::steady_clock;
    void record(const Compaction& done);

    SessionPool* pool_;
    Session* session_;
    MeterSummary totals_;
    Clock::time_point start_ = Clock::now();
    Clock::time_point generation_start_ = start_;
    Clock::time_point last_token_ = start_;
    std::ofstream file_;
    std::filesystem::path path_;
};

Json to_json(const MeterSummary& summary);

/// The process's peak resident set, in bytes.
size_t peak_rss_bytes();
/// The process's current resident set, in bytes.
size_t current_rss_bytes();

} // namespace spool
