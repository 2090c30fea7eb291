// `spool eval recall`: exact answers to what was stated long ago.
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "cli/chat_encoder.h"
#include "cli/command.h"
#include "cli/eval.h"
#include "cli/options.h"
#include "cli/synthetic_arguments.h"
#include "core/progress.h"
#include "core/report.h"
#include "eval/recall.h"

namespace spool::cli {

namespace {

struct RecallArguments {
    ModelArguments model;
    MemoryArguments memory;
    std::string task = "recall";
    SyntheticArguments traces;
    std::vector<uint32_t> windows;
    std::vector<uint32_t> max_distants;
    std::string report;
};

/// What was measured with one choice of memory settings.
struct Measured {
    MemorySettings memory;
    RecallResult result;

    std::string name() const {
        return memory.strategy == StrategyKind::soft_prompt
                   ? fmt::format("rw {}, maxD {}", memory.window, memory.max_distant)
                   : fmt::format("rw {}", memory.window);
    }
};

/// Every window with every maxD; what was not listed comes from the options, the bundle or the defaults.
std::vector<MemorySettings> settings_of(const RecallArguments& arguments, const Loaded& loaded) {
    const auto or_given = [](const std::vector<uint32_t>& list, const std::optional<uint32_t>& given) {
        std::vector<std::optional<uint32_t>> all(list.begin(), list.end());
        return all.empty() ? std::vector<std::optional<uint32_t>>{given} : all;
    };
    std::vector<MemorySettings> all;
    for (const auto& max_distant : or_given(arguments.max_distants, arguments.memory.request.max_distant)) {
        for (const auto& window : or_given(arguments.windows, arguments.memory.request.window)) {
            MemoryArguments chosen = arguments.memory;
            chosen.request.max_distant = max_distant;
            chosen.request.window = window;
            all.push_back(chosen.settings(loaded.bundle_or_null(), *loaded.model));
        }
    }
    return all;
}

Json identity_of(const RecallArguments& arguments, const SyntheticOptions& options, const Loaded& loaded) {
    return {{"task", arguments.task},
            {"facts", options.facts},
            {"distance", {options.distance_low, options.distance_high}},
            {"seed", options.seed},
            {"model", loaded.model->facts().description},
            {"bundle", arguments.model.bundle}};
}

Json to_json(const Measured& measured) {
    Json json = to_json(measured.result);
    json["strategy"] = to_string(measured.memory.strategy);
    json["window"] = measured.memory.window;
    json["max_distant"] = measured.memory.max_distant;
    return json;
}

Report report_of(const Json& identity, const std::vector<Measured>& all) {
    Report report(fmt::format("spool eval recall: {}", identity["task"].get<std::string>()));
    std::vector<Bar> exact;
    std::vector<Bar> digits;
    std::map<uint32_t, Series> by_max_distant;
    for (const Measured& one : all) {
        exact.push_back({one.name(), one.result.exact});
        digits.push_back({one.name(), one.result.digits});
        Series& line = by_max_distant[one.memory.max_distant];
        line.name = fmt::format("maxD {}", one.memory.max_distant);
        line.points.emplace_back(one.memory.window, one.result.exact.value);
    }
    if (all.size() > by_max_distant.size()) {
        std::vector<Series> lines;
        lines.reserve(by_max_distant.size());
        for (auto& [max_distant, line] : by_max_distant) {
            lines.push_back(std::move(line));
        }
        report.lines("Answers given in full, by window", "rw", lines);
    }
    report.bars("Answers given in full [95% bootstrap]", exact);
    report.bars("Their digits [95% bootstrap]", digits);
    report.table("Settings", identity);
    return report;
}

void print(const Json& identity, const std::vector<Measured>& all) {
    const auto cell = [](const Interval& share) {
        return fmt::format("{:5.1f}% [{:.1f}, {:.1f}]", 100 * share.value, 100 * share.lo, 100 * share.hi);
    };
    fmt::print("{}, {} to a trace, {} to {} tokens back, strategy {}: {} traces [95% bootstrap]\n",
               identity["task"].get<std::string>(), identity["facts"].get<int>(),
               identity["distance"][0].get<int>(), identity["distance"][1].get<int>(),
               to_string(all.front().memory.strategy), all.front().result.cases.size());
    for (const Measured& one : all) {
        fmt::print("  {:<20} exact {:<22} digits {}\n", one.name(), cell(one.result.exact),
                   cell(one.result.digits));
    }
}

int run(const RecallArguments& arguments, const Global& global) {
    catch_interrupts();
    ReportFile page(arguments.report);
    const SyntheticOptions options = arguments.traces.options(arguments.task);
    const Loaded loaded = load(arguments.model);
    const ChatEncoder encoder(*loaded.model);
    const Synthesizer synthesizer(options, encoder, 0);
    const std::vector<MemorySettings> settings = settings_of(arguments, loaded);
    std::vector<Measured> all;
    Progress progress("eval recall", settings.size() * options.samples);
    for (const MemorySettings& memory : settings) {
        if (interrupted()) {
            break;
        }
        const size_t before = all.size() * options.samples;
        all.push_back({memory, evaluate_recall(*loaded.model, loaded.bundle_or_null(),
                                               pool_options(arguments.model, memory), synthesizer,
                                               options.samples, [&](size_t done) {
                                                   progress.update(before + done);
                                                   return !interrupted();
                                               })});
    }
    progress.finish();
    const Json identity = identity_of(arguments, options, loaded);
    page.write(report_of(identity, all));
    if (global.json) {
        Json json = to_json(all.front());
        json.update(identity);
        if (all.size() > 1) {
            json["grid"] = Json::array();
            for (const Measured& one : all) {
                json["grid"].push_back(to_json(one));
            }
        }
        print_json(json);
    } else {
        print(identity, all);
    }
    return interrupted() ? exit_interrupted : exit_success;
}

} // namespace

void add_eval_recall(CLI::App& eval, Global& global) {
    auto arguments = std::make_shared<RecallArguments>();
    CLI::App* command = eval.add_subcommand("recall", "exact answers to what was stated long ago");
    command->footer(
        "An answer is exact if each of its tokens was the likeliest; digits counts those tokens.\n"
        "Example: spool eval recall -m models/tiny-slots/model.gguf --bundle models/tiny-slots "
        "--facts 4 --distance 2000 --samples 100\n"
        "         spool eval recall -m model.gguf --bundle DIR --distance 300-1200 --windows 128 512 1000 "
        "--max-distants 64 256 4096 --report recall.html");
    arguments->model.add_to(*command);
    arguments->memory.add_to(*command);
    arguments->traces.samples = 50;
    command->add_option("--task", arguments->task, "recall | ledger | rally")
        ->capture_default_str()
        ->group("Traces");
    arguments->traces.add_to(*command, "Traces");
    command
        ->add_option("--windows", arguments->windows,
                     "several windows in turn, each with every --max-distants")
        ->group("Traces");
    command->add_option("--max-distants", arguments->max_distants, "several lengths of the distant buffer")
        ->group("Traces");
    command->add_option("--report", arguments->report, "write a page of plots (HTML)")->group("Traces");
    command->callback([arguments, &global] { global.exit_code = run(*arguments, global); });
}

} // namespace spool::cli
