// Synthetic traces whose later tokens need earlier ones, at a distance that is set in tokens. There is no
// end of them: each follows from the seed and its index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "corpus/encoder.h"
#include "corpus/filler.h"
#include "corpus/shards.h"

namespace spool {

enum class SyntheticTask {
    recall, ///< "The code of the red lantern is 482." ... asked for far later
    ledger, ///< accounts with payments between the text; the balance is asked for
    rally   ///< "Take the last result, add 7.": each result needs the one before
};

std::string to_string(SyntheticTask task);
/// Throws Error{invalid_argument} naming the three.
SyntheticTask synthetic_task_from_string(const std::string& name);

struct SyntheticOptions {
    SyntheticTask task = SyntheticTask::recall;
    size_t samples = 1000;
    int32_t facts = 4;   ///< recall: codes; ledger: accounts; rally: turns
    int32_t repeats = 1; ///< recall: times each code is asked for; its last answer states it again
    /// Tokens from the end of the last statement an answer needs to the answer: uniform in [low, high].
    int32_t distance_low = 1024;
    int32_t distance_high = 1024;
    uint64_t seed = 1;
    std::filesystem::path filler; ///< natural text; empty: made-up sentences
};

struct SyntheticTrace {
    std::vector<Token> tokens;
    int32_t prompt = 0; ///< as in TraceView
    std::vector<Answer> answers;
    bool validation = false;
};

class Synthesizer {
  public:
    /// `encoder` must outlive it. Throws Error{invalid_argument} for options that cannot be met, saying
    /// what can, and what Filler throws.
    Synthesizer(const SyntheticOptions& options, const Encoder& encoder, double val_share);

    /// Sample `index`. Every distance has been measured again in the ids of the whole reply. Thread-safe.
    SyntheticTrace make(size_t index) const;

  private:
    SyntheticOptions options_;
    const Encoder& encoder_;
    double val_share_;
    Filler filler_;
    EncodedPrompt prompt_; ///< the same for all samples of a task
};

} // namespace spool
