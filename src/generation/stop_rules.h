// When generation ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llm/tokenizer.h"

namespace spool {

enum class StopReason {
    end_token,
    max_tokens,
    time_limit,
    repetition,
    stop_string,
    interrupted,
    context_full,
    caller
};

/// "end_token", "max_tokens", ... as printed in `--json`.
std::string_view to_string(StopReason reason);

/// The same token this many times in a row is a model that is stuck.
class RepetitionRule {
  public:
    explicit RepetitionRule(size_t limit = 6) : limit_(limit) {}
    /// True when `token` completes a run of `limit` identical tokens. A limit of 0 never fires.
    bool push(Token token);

  private:
    size_t limit_;
    size_t run_ = 0;
    Token last_ = -1;
};

/// Finds stop strings in streamed text and holds back text that could be the start of one.
class StopStrings {
  public:
    /// Empty strings are ignored.
    explicit StopStrings(std::vector<std::string> strings);
    /// Adds text; returns what can be shown. Once found() is true, nothing from the stop string on is shown.
    std::string push(std::string_view text);
    /// What was held back and turned out not to be a stop string.
    std::string finish();
    bool found() const { return found_; }

  private:
    std::vector<std::string> strings_;
    std::string held_;
    bool found_ = false;
};

} // namespace spool
