// `spool bench`: spool's speed beside llama.cpp's, in one process and interleaved, so that a machine whose
// speed drifts slows both alike.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "context/session.h"

namespace spool {

/// One line of the table.
struct SpeedRow {
    std::string name;
    double value = 0;
    std::string unit;
    double peer = 0;    ///< 0: no peer
    double ratio = 0;   ///< value / peer unless the note says otherwise
    std::string wanted; ///< what the ratio or value should be; empty: printed only
    std::string note;
};

struct SpeedOptions {
    PoolOptions pool; ///< threads, cache types; memory settings are the measurement's own
    uint32_t window = 512;
    size_t tokens = 1536; ///< generated per measurement
    std::function<bool()> cancelled = [] { return false; };
};

/// Tokens a second of a long run at chunk C with what the bundle holds (a pooler under `refresh`, or slots),
/// beside plain decoding with as many cells filled; for a pooler also the bound 1 / (1 + (n_sp / pp) / (C /
/// tg)) that the peer's own prefill and decode speeds allow.
std::vector<SpeedRow> measure_strategy(const Model& model, const Bundle* bundle, const SpeedOptions& options,
                                       Layout refresh, uint32_t chunk);

/// `tokens` generated at rw = 128, maxD = 4096: the speed of the last 1,000 against tokens 5,000 to 6,000 and
/// the growth of resident memory after the first 2,000. Progress on stderr.
std::vector<SpeedRow> measure_flatness(const Model& model, const Bundle* bundle, const SpeedOptions& options,
                                       size_t tokens);

/// Milliseconds of a compaction's pooling at the reference shape (H = 1536, 4,096 kept, 64 of 4,160 evicted:
/// two passes) beside what a 1.5B Q4 model of random weights, written to `folder`, needs for 64 tokens.
std::vector<SpeedRow> measure_pooler(const Model& tokenizer_model, const std::filesystem::path& folder,
                                     int threads);

/// Wall-clock milliseconds of two whole programs, run in turn `runs` times, medians. `name` labels the row.
SpeedRow measure_programs(const std::string& name, const std::vector<std::string>& program,
                          const std::vector<std::string>& peer, size_t runs);

} // namespace spool
