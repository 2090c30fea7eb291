// `spool eval recall`: exact answers to what was stated long ago.
#include <fmt/core.h>

#include "cli/chat_encoder.h"
#include "cli/command.h"
#include "cli/eval.h"
#include "cli/options.h"
#include "cli/synthetic_arguments.h"
#include "core/progress.h"
#include "eval/recall.h"

namespace spool::cli {

namespace {

struct RecallArguments {
    ModelArguments model;
    MemoryArguments memory;
    std::string task = "recall";
    SyntheticArguments traces;
};

int run(const RecallArguments& arguments, const Global& global) {
    catch_interrupts();
    const SyntheticOptions options = arguments.traces.options(arguments.task);
    const Loaded loaded = load(arguments.model);
    const Bundle* bundle = loaded.bundle_or_null();
    const MemorySettings memory = arguments.memory.settings(bundle, *loaded.model);
    const ChatEncoder encoder(*loaded.model);
    const Synthesizer synthesizer(options, encoder, 0);
    Progress progress("eval recall", options.samples);
    const RecallResult result = evaluate_recall(*loaded.model, bundle, pool_options(arguments.model, memory),
                                                synthesizer, options.samples, [&](size_t done) {
                                                    progress.update(done);
                                                    return !interrupted();
                                                });
    progress.finish();
    if (global.json) {
        Json json = to_json(result);
        json["task"] = arguments.task;
        json["facts"] = options.facts;
        json["distance"] = {options.distance_low, options.distance_high};
        json["seed"] = options.seed;
        json["strategy"] = to_string(memory.strategy);
        print_json(json);
    } else {
        const auto row = [](const char* name, const Interval& share) {
            fmt::print("  {:<7}{:6.1f}%  [{:.1f}%, {:.1f}%]\n", name, 100 * share.value, 100 * share.lo,
                       100 * share.hi);
        };
        fmt::print("{}, {} to a trace, {} to {} tokens back, strategy {}: {} traces [95% bootstrap]\n",
                   arguments.task, options.facts, options.distance_low, options.distance_high,
                   to_string(memory.strategy), result.cases.size());
        row("exact", result.exact);
        row("digits", result.digits);
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
        "--facts 4 --distance 2000 --samples 100");
    arguments->model.add_to(*command);
    arguments->memory.add_to(*command);
    arguments->traces.samples = 50;
    command->add_option("--task", arguments->task, "recall | ledger | rally")
        ->capture_default_str()
        ->group("Traces");
    arguments->traces.add_to(*command, "Traces");
    command->callback([arguments, &global] { global.exit_code = run(*arguments, global); });
}

} // namespace spool::cli
