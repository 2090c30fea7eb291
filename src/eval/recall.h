// `spool eval recall`: are facts that were stated long ago answered exactly? On synthetic traces, read token
// by token; an answer counts if each of its tokens was the likeliest.
#pragma once

#include <functional>
#include <vector>

#include "context/session.h"
#include "core/bootstrap.h"
#include "core/json.h"
#include "corpus/synthetic.h"

namespace spool {

/// What was asked for in one trace.
struct RecallCase {
    size_t answers = 0;
    size_t exact = 0; ///< answers given in full: greedy decoding would have written them
    size_t tokens = 0;
    size_t right = 0; ///< of their tokens, each with the true ones before it
};

struct RecallResult {
    std::vector<RecallCase> cases;
    Interval exact;  ///< share of the answers
    Interval digits; ///< share of the answers' tokens
};

/// Reads traces 0 .. samples - 1. The pool's own memory settings apply, but for the pinned tokens: those are
/// the prompt. `on_case` is called after each; returning false stops early, and what is there is summarised.
RecallResult evaluate_recall(const Model& model, const Bundle* bundle, PoolOptions options,
                             const Synthesizer& synthesizer, size_t samples,
                             const std::function<bool(size_t done)>& on_case);

/// {"samples", "answers", "exact": {mean, lo, hi}, "digits": {...}}.
Json to_json(const RecallResult& result);

} // namespace spool
