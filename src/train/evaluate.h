// What memory is worth to the model being trained: the arms of `spool eval ce`, on whole traces.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "corpus/shards.h"
#include "train/reader.h"

namespace spool::train {

struct EvaluationOptions {
    MemorySettings memory; ///< window, chunk, max_distant; refresh says the layout
    uint32_t max_tokens = 4096;
    bool all_arms = false;  ///< else full, window and memory only
    bool full_only = false; ///< the reference: full alone, with and without the adapter
    uint64_t seed = 1;
    std::function<bool(size_t done)> on_trace; ///< false stops early
};

/// How the run's own evaluations read traces.
EvaluationOptions evaluation_options(const Settings& settings);

/// Of one trace: nats per raw token and arm, and whether each answer was given in full.
struct TraceScore {
    std::map<std::string, std::vector<float>> nll;                 ///< [raw tokens]
    std::map<std::string, std::vector<std::vector<bool>>> answers; ///< arm -> answer -> token correct
    std::vector<int32_t> distances;                                ///< of the answers
};

/// Arms: full, window (streamed with the same chunk), memory; besides them window_equal (a window larger by
/// n_sp), noise (random vectors of the same norm), other (another trace's vectors), full_base, window_base
/// (without the adapter).
std::vector<TraceScore> score_traces(Reader& reader, const std::vector<TraceView>& traces,
                                     const EvaluationOptions& options);

/// {"traces", "deep": arm -> mean, lo, hi nats at raw tokens >= window + 512 (all after the first compaction
/// where no trace is that long), "recovered", "by_distance", "answers": arm -> exact, digits}.
Json summarise(const std::vector<TraceScore>& scores, const MemorySettings& memory);

} // namespace spool::train
