// `spool eval ce`: what memory is worth, in nats per token of a record's target, against having everything
// and having only the window.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "context/session.h"
#include "core/bootstrap.h"
#include "core/json.h"
#include "corpus/records.h"

namespace spool {

/// The arms; each is base + adapter unless it says otherwise.
///   full          everything before the target
///   window        prompt + recent
///   soft_prompt   rebuild: prompt + pooler(distant) + recent; carry: the record streamed with C = rw =
///   |recent| noise         as soft_prompt, with random vectors of the same norm other         as
///   soft_prompt, with the vectors of the next record stream        carry without a soft prompt window_equal
///   a window larger by n_sp tokens full_base, window_base   without the adapter
/// Without a bundle only full, window and stream exist.
using ArmValues = std::map<std::string, double>;

struct CrossEntropyOptions {
    PoolOptions pool; ///< threads, batch, cache types; the memory settings are each arm's own
    Layout refresh = Layout::carry;
    std::vector<std::string> arms; ///< only these; empty: all
    /// After each record; returning false stops early, and what is there is summarised.
    std::function<bool(size_t index, const ArmValues&)> on_record;
};

struct CrossEntropyResult {
    std::vector<ArmValues> records; ///< mean nats a target token, in the records' order
    std::map<std::string, Interval> arms;
    /// (CE_window - CE_soft_prompt) / (CE_window - CE_full), full and window each the lower of base and base
    /// + adapter; NaN unless all five arms it needs were run.
    Interval recovered;
};

/// Runs the arms over all records, in one pool. Throws Error{invalid_argument} for an arm there is not.
CrossEntropyResult evaluate_cross_entropy(const Model& model, const Bundle* bundle,
                                          const CrossEntropyOptions& options,
                                          const std::vector<Record>& records);

/// The shape of `spool eval ce --json`.
Json to_json(const CrossEntropyResult& result);

/// -log softmax(logits)[target], in nats.
double negative_log_likelihood(std::span<const float> logits, Token target);

} // namespace spool
