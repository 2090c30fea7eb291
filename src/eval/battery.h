// Problems put to a model in conversations of their own, graded on the last \boxed{} of each reply.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chat/conversation.h"
#include "core/bootstrap.h"
#include "core/json.h"
#include "core/report.h"
#include "eval/problems.h"

namespace spool {

/// The sentence that asks for reasoning and a box, put behind every question.
extern const char* const math_sentence;

struct TurnGrade {
    bool ended = false; ///< the reply stood, and the model ended it itself
    bool correct = false;
    size_t tokens = 0;
    std::string box; ///< empty: none
    std::string fault;
};

/// One problem, once.
struct Attempt {
    std::string problem;
    uint32_t sample = 0;
    std::vector<TurnGrade> turns;
    size_t largest_kept = 0; ///< tokens compressed at most
    size_t evicted = 0;

    bool correct() const;
    /// Turns answered right before the first that was not.
    size_t right_turns() const;
};

struct BatteryOptions {
    PoolOptions pool;
    TurnRules rules;
    TurnFormatOptions format;
    uint32_t samples = 1;
    bool math = true; ///< math_sentence behind every question
    /// Where every attempt is written as it is made (JSON Lines); attempts that are there are not made again.
    /// Empty: nowhere.
    std::filesystem::path results;
    /// Before each attempt is made or found; false stops early, and what is there is summarised.
    std::function<bool(size_t done, size_t total)> on_attempt;
    const std::atomic<bool>* interrupted = nullptr;
};

/// Makes what chooses the tokens of one attempt.
using ChooserFactory = std::function<std::unique_ptr<Chooser>(const Problem& problem, uint32_t sample,
                                                              const Tokenizer& tokenizer)>;

/// Every problem `samples` times. Throws Error{incompatible} if `results` holds attempts of other settings
/// (`identity` differs).
std::vector<Attempt> run_battery(const Model& model, const Bundle* bundle, const ChatTemplate& chat,
                                 const ReasoningFormat& reasoning, const std::vector<Problem>& problems,
                                 const ChooserFactory& choosers, const Json& identity,
                                 const BatteryOptions& options);

struct BatterySummary {
    Interval accuracy;    ///< of all turns of all attempts; drawn by attempt
    Interval termination; ///< turns that ended by themselves
    Interval tokens;      ///< mean of a turn
    Interval lost_at;     ///< mean turn at which a chain went wrong first; its length + 1 if never
};

BatterySummary summarise(const std::vector<Attempt>& attempts);
Json to_json(const BatterySummary& summary);
Json to_json(const Attempt& attempt);

/// Accuracy by problem (or by turn, for chains), lengths, and what was kept and evicted.
Report battery_report(const std::string& title, const std::vector<Attempt>& attempts, const Json& identity);

} // namespace spool
