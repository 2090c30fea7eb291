// The generation loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "context/session.h"
#include "generation/meter.h"
#include "generation/stop_rules.h"
#include "llm/sampler.h"

namespace spool {

struct GenerationOptions {
    size_t max_tokens = 256;
    double max_seconds = 0;  ///< wall clock; 0: no limit
    size_t repeat_limit = 6; ///< identical tokens in a row; 0: no limit
    std::vector<std::string> stop;
    bool show_special = false; ///< control tokens appear as text
    /// Set from elsewhere (Ctrl-C) to stop after the current token.
    const std::atomic<bool>* interrupted = nullptr;
    /// Whole UTF-8 characters as they become final; returning false stops.
    std::function<bool(std::string_view)> on_text;
    /// After every token, e.g. to redraw a meter.
    std::function<void()> on_token;
};

struct Generation {
    std::string text;
    std::vector<Token> tokens; ///< all that were chosen, the end token included
    StopReason reason = StopReason::max_tokens;
};

/// Continues `session` until a stop rule fires. Every chosen token but an end token has been read by the
/// session when it returns, so that a later call goes on from there. `meter` may be nullptr.
Generation generate(Session& session, Chooser& sampler, const Tokenizer& tokenizer,
                    const GenerationOptions& options, Meter* meter);

} // namespace spool
