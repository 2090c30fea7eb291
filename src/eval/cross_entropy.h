// `spool eval ce`: what memory is worth, in nats per token of a record's target, against having everything and
// having only the window.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "context/session.h"
#include "core/json.h"
#include "corpus/records.h"
#include "eval/bootstrap.h"

namespace spool {

/// The arms; each is base + adapter unless it says otherwise.
///   full          everything before the target
///   window        prompt + recent
///   soft_prompt   rebuild: prompt + pooler(distant) + recent; carry: the record streamed with C = rw = |recent|
///   noise         as soft_prompt, with random vectors of the same norm
///   other         as soft_prompt, with the vectors of the next record
///   stream        carry without a soft prompt
///   window_equal  a window larger by n_sp tokens
///   full_base, window_base   without the adapter
/// Without a bundle only full, window and stream exist.
using ArmValues = std::map<std::string, double>;

struct CrossEntropyResult {
    std::vector<ArmValues> records; ///< mean nats a target token, in the records' order
    std::map<std::string, Interval> arms;
    /// (CE_window - CE_soft_prompt) / (CE_window - CE_full), full and window each the lower of base and base +
    /// adapter; NaN without a bundle.
    Interval recovered;
};

/// Runs all arms over all records, in one pool with the options given; `options.memory` is overridden as each arm
/// needs. `on_record` is called after each record (progress, partial results); returning false stops early and
/// summarises what is there. Throws Error{invalid_argument} if no record fits the model's context.
CrossEntropyResult evaluate_cross_entropy(const Model& model, const Bundle* bundle, const PoolOptions& options,
                                          Layout refresh, const std::vector<Record>& records,
                                          const std::function<bool(size_t index, const ArmValues&)>& on_record);

/// The shape of `spool eval ce --json`.
Json to_json(const CrossEntropyResult& result);

/// -log softmax(logits)[target], in nats.
double negative_log_likelihood(std::span<const float> logits, Token target);

} // namespace spool
