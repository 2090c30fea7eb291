#include "eval/battery.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "eval/grader.h"

namespace spool {

const char* const math_sentence = "Please reason step by step, and put your final answer within \\boxed{}.";

namespace {

Attempt attempt_from_json(const Json& json) {
    Attempt attempt;
    attempt.problem = json.at("problem").get<std::string>();
    attempt.sample = json.at("sample").get<uint32_t>();
    attempt.largest_kept = json.at("largest_kept").get<size_t>();
    attempt.evicted = json.at("evicted").get<size_t>();
    for (const Json& turn : json.at("turns")) {
        attempt.turns.push_back({.ended = turn.at("ended").get<bool>(),
                                 .correct = turn.at("correct").get<bool>(),
                                 .tokens = turn.at("tokens").get<size_t>(),
                                 .box = turn.at("box").get<std::string>(),
                                 .fault = turn.at("fault").get<std::string>()});
    }
    return attempt;
}

/// The attempts of an earlier run, and where this one's go.
class Results {
  public:
    Results(std::filesystem::path path, const Json& identity) : path_(std::move(path)) {
        if (path_.empty()) {
            return;
        }
        if (std::filesystem::exists(path_)) {
            read(identity);
        } else {
            append({{"settings", identity}});
        }
    }

    const Attempt* find(const std::string& problem, uint32_t sample) const {
        const auto found = done_.find({problem, sample});
        return found == done_.end() ? nullptr : &found->second;
    }
    void add(const Attempt& attempt) {
        if (!path_.empty()) {
            append(to_json(attempt));
        }
    }

  private:
    void read(const Json& identity) {
        std::ifstream file(path_);
        bool first = true;
        for (std::string line; std::getline(file, line); first = false) {
            const Json json = Json::parse(line, nullptr, false);
            if (first && (!json.is_object() || json.value("settings", Json()) != identity)) {
                fail(ErrorCode::incompatible,
                     "{}: holds attempts made with other settings; name another file. It has {}, this run {}",
                     path_.string(), json.is_object() ? json.value("settings", Json()).dump() : "none",
                     identity.dump());
            }
            if (!first && json.is_object()) { // a line that a kill cut short is made again
                Attempt attempt = attempt_from_json(json);
                done_.insert_or_assign({attempt.problem, attempt.sample}, std::move(attempt));
            }
        }
    }
    void append(const Json& json) const {
        std::ofstream file(path_, std::ios::app);
        file << json_text(json) << '\n' << std::flush;
        if (!file) {
            fail(ErrorCode::io, "{}: cannot be written", path_.string());
        }
    }

    std::filesystem::path path_;
    std::map<std::pair<std::string, uint32_t>, Attempt> done_;
};

Attempt make_attempt(SessionPool& pool, const Tokenizer& tokenizer, const TurnFormat& format,
                     const Problem& problem, uint32_t sample, Chooser& chooser,
                     const BatteryOptions& options) {
    Attempt attempt{.problem = problem.id, .sample = sample, .turns = {}};
    const auto session = pool.open();
    session->on_compaction = [&](const Compaction& done) {
        attempt.largest_kept = std::max(attempt.largest_kept, done.kept);
        attempt.evicted += done.evicted;
    };
    Conversation conversation({*session, tokenizer, format, chooser}, options.rules);
    TurnEvents events;
    events.interrupted = options.interrupted;
    for (size_t i = 0; i < problem.questions.size(); ++i) {
        const std::string question =
            options.math ? problem.questions[i] + "\n" + math_sentence : problem.questions[i];
        const Turn turn = conversation.say(question, events);
        if (turn.reason == StopReason::interrupted) {
            return attempt;
        }
        const auto box = last_box(turn.answer);
        attempt.turns.push_back(
            {.ended = turn.fault == TurnFault::none && turn.reason == StopReason::end_token,
             .correct = turn.fault == TurnFault::none && box && same_answer(*box, problem.answers[i]),
             .tokens = turn.tokens,
             .box = box.value_or(""),
             .fault = std::string(to_string(turn.fault))});
    }
    return attempt;
}

/// A statistic of attempts, drawn whole.
Interval over_attempts(const std::vector<Attempt>& attempts,
                       const std::function<double(const TurnGrade&)>& value) {
    return bootstrap(attempts.size(), [&](std::span<const size_t> drawn) {
        double sum = 0;
        size_t count = 0;
        for (const size_t i : drawn) {
            for (const TurnGrade& turn : attempts[i].turns) {
                sum += value(turn);
                ++count;
            }
        }
        return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
    });
}

} // namespace

bool Attempt::correct() const {
    return !turns.empty() && std::ranges::all_of(turns, [](const TurnGrade& turn) { return turn.correct; });
}

size_t Attempt::right_turns() const {
    return static_cast<size_t>(std::ranges::find(turns, false, &TurnGrade::correct) - turns.begin());
}

std::vector<Attempt> run_battery(const Model& model, const Bundle* bundle, const ChatTemplate& chat,
                                 const ReasoningFormat& reasoning, const std::vector<Problem>& problems,
                                 const ChooserFactory& choosers, const Json& identity,
                                 const BatteryOptions& options) {
    const Tokenizer tokenizer(model);
    const TurnFormat format(chat, tokenizer, reasoning, options.format);
    PoolOptions pool_options = options.pool;
    pool_options.memory.pin = format.pinned();
    SessionPool pool(model, bundle, pool_options);
    Results results(options.results, identity);
    std::vector<Attempt> attempts;
    const size_t total = problems.size() * options.samples;
    for (const Problem& problem : problems) {
        for (uint32_t sample = 0; sample < options.samples; ++sample) {
            if (options.on_attempt && !options.on_attempt(attempts.size(), total)) {
                return attempts;
            }
            const Attempt* known = results.find(problem.id, sample);
            if (known != nullptr) {
                attempts.push_back(*known);
                continue;
            }
            const auto chooser = choosers(problem, sample, tokenizer);
            Attempt attempt = make_attempt(pool, tokenizer, format, problem, sample, *chooser, options);
            if (attempt.turns.size() < problem.questions.size()) {
                return attempts; // interrupted
            }
            results.add(attempt);
            attempts.push_back(std::move(attempt));
        }
    }
    return attempts;
}

BatterySummary summarise(const std::vector<Attempt>& attempts) {
    BatterySummary summary;
    summary.accuracy =
        over_attempts(attempts, [](const TurnGrade& turn) { return turn.correct ? 1.0 : 0.0; });
    summary.termination =
        over_attempts(attempts, [](const TurnGrade& turn) { return turn.ended ? 1.0 : 0.0; });
    summary.tokens =
        over_attempts(attempts, [](const TurnGrade& turn) { return static_cast<double>(turn.tokens); });
    summary.lost_at = bootstrap(attempts.size(), [&](std::span<const size_t> drawn) {
        double sum = 0;
        for (const size_t i : drawn) {
            sum += static_cast<double>(attempts[i].right_turns() + 1);
        }
        return drawn.empty() ? std::numeric_limits<double>::quiet_NaN()
                             : sum / static_cast<double>(drawn.size());
    });
    return summary;
}

Json to_json(const BatterySummary& summary) {
    return {{"accuracy", to_json(summary.accuracy, "mean")},
            {"termination", to_json(summary.termination, "mean")},
            {"tokens", to_json(summary.tokens, "mean")},
            {"lost_at_turn", to_json(summary.lost_at, "mean")}};
}

Json to_json(const Attempt& attempt) {
    Json turns = Json::array();
    for (const TurnGrade& turn : attempt.turns) {
        turns.push_back({{"ended", turn.ended},
                         {"correct", turn.correct},
                         {"tokens", turn.tokens},
                         {"box", turn.box},
                         {"fault", turn.fault}});
    }
    return {{"problem", attempt.problem},
            {"sample", attempt.sample},
            {"turns", turns},
            {"largest_kept", attempt.largest_kept},
            {"evicted", attempt.evicted}};
}

Report battery_report(const std::string& title, const std::vector<Attempt>& attempts, const Json& identity) {
    Report report(title);
    const BatterySummary summary = summarise(attempts);
    report.bars("All",
                {{"answers right", summary.accuracy}, {"replies ended by the model", summary.termination}});

    // By problem where there are few, by turn where there are several.
    std::map<std::string, std::vector<Attempt>> by_problem;
    size_t most_turns = 0;
    for (const Attempt& attempt : attempts) {
        by_problem[attempt.problem].push_back(attempt);
        most_turns = std::max(most_turns, attempt.turns.size());
    }
    constexpr size_t few = 30;
    if (by_problem.size() <= few) {
        std::vector<Bar> bars;
        bars.reserve(by_problem.size());
        for (const auto& [problem, tried] : by_problem) {
            bars.push_back({problem, summarise(tried).accuracy});
        }
        report.bars("Answers right, by problem", bars);
    }
    Series right{.name = "right", .points = {}};
    Series lengths{.name = "tokens", .points = {}};
    for (size_t turn = 0; turn < most_turns; ++turn) {
        double correct = 0;
        double tokens = 0;
        double count = 0;
        for (const Attempt& attempt : attempts) {
            if (turn < attempt.turns.size()) {
                correct += attempt.turns[turn].correct ? 1 : 0;
                tokens += static_cast<double>(attempt.turns[turn].tokens);
                ++count;
            }
        }
        right.points.emplace_back(turn + 1, correct / count);
        lengths.points.emplace_back(turn + 1, tokens / count);
    }
    if (most_turns > 1) {
        report.lines("Answers right, by turn", "turn", {right});
        report.lines("Tokens in a reply, by turn", "turn", {lengths});
    }
    Series kept{.name = "compressed at most", .points = {}};
    Series evicted{.name = "evicted", .points = {}};
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < attempts.size(); ++i) {
        kept.points.emplace_back(i + 1, static_cast<double>(attempts[i].largest_kept));
        evicted.points.emplace_back(i + 1, static_cast<double>(attempts[i].evicted));
        for (size_t turn = 0; turn < attempts[i].turns.size(); ++turn) {
            const TurnGrade& grade = attempts[i].turns[turn];
            rows.push_back({attempts[i].problem, std::to_string(attempts[i].sample + 1),
                            std::to_string(turn + 1), grade.correct ? "right" : "wrong", grade.box,
                            std::to_string(grade.tokens), grade.fault});
        }
    }
    report.lines("Tokens outside the window", "attempt", {kept, evicted});
    report.table("Every reply", {"problem", "sample", "turn", "", "box", "tokens", "fault"}, rows);
    report.table("Settings", identity);
    return report;
}

} // namespace spool
