#include "eval/recall.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spool {

namespace {

RecallCase read_trace(SessionPool& pool, const SyntheticTrace& trace) {
    const std::unique_ptr<Session> session = pool.open();
    const std::span<const Token> tokens = trace.tokens;
    RecallCase result;
    size_t at = 0;
    for (const Answer& answer : trace.answers) {
        const auto first = static_cast<size_t>(answer.offset);
        session->read(tokens.subspan(at, first - at));
        bool exact = true;
        for (at = first; at < first + static_cast<size_t>(answer.length); ++at) {
            const auto logits = session->logits();
            const bool right = std::ranges::max_element(logits) - logits.begin() == tokens[at];
            result.right += right ? 1 : 0;
            exact = exact && right;
            session->read(tokens.subspan(at, 1));
        }
        result.tokens += static_cast<size_t>(answer.length);
        result.exact += exact ? 1 : 0;
        ++result.answers;
    }
    return result;
}

Interval share(const std::vector<RecallCase>& cases, size_t RecallCase::* good, size_t RecallCase::* all) {
    return bootstrap(cases.size(), [&](std::span<const size_t> drawn) {
        size_t some = 0;
        size_t total = 0;
        for (const size_t i : drawn) {
            some += cases[i].*good;
            total += cases[i].*all;
        }
        return total == 0 ? std::numeric_limits<double>::quiet_NaN()
                          : static_cast<double>(some) / static_cast<double>(total);
    });
}

} // namespace

RecallResult evaluate_recall(const Model& model, const Bundle* bundle, PoolOptions options,
                             const Synthesizer& synthesizer, size_t samples,
                             const std::function<bool(size_t done)>& on_case) {
    RecallResult result;
    std::optional<SessionPool> pool;
    for (size_t i = 0; i < samples; ++i) {
        const SyntheticTrace trace = synthesizer.make(i);
        if (!pool) { // all traces have one prompt
            options.memory.pin = static_cast<uint32_t>(trace.prompt);
            pool.emplace(model, bundle, options);
        }
        result.cases.push_back(read_trace(*pool, trace));
        if (on_case && !on_case(i + 1)) {
            break;
        }
    }
    result.exact = share(result.cases, &RecallCase::exact, &RecallCase::answers);
    result.digits = share(result.cases, &RecallCase::right, &RecallCase::tokens);
    return result;
}

Json to_json(const RecallResult& result) {
    size_t answers = 0;
    for (const RecallCase& one : result.cases) {
        answers += one.answers;
    }
    return {{"samples", result.cases.size()},
            {"answers", answers},
            {"exact", to_json(result.exact, "mean")},
            {"digits", to_json(result.digits, "mean")}};
}

} // namespace spool
