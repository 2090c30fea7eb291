// The training loop.
#pragma once

#include <atomic>

#include "core/json.h"
#include "train/settings.h"

namespace spool::train {

/// Trains as `settings` say, continuing from the newest checkpoint in settings.out if there is one. Writes
/// settings.out/log.jsonl (one object a step and an evaluation), curve.html and checkpoints; saves and
/// returns early when `stop` is set. Returns {"steps", "loss", "seconds", "checkpoint"} and the last
/// evaluation. Throws Error{internal} naming step, traces and the last good checkpoint when the loss is not
/// finite.
Json train(const Settings& settings, const std::atomic<bool>& stop);

} // namespace spool::train
