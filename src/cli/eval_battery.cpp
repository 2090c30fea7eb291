// `spool eval battery|gsm8k|math500|mathchat|rally`: problems in conversations, graded.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/eval.h"
#include "cli/options.h"
#include "core/error.h"
#include "core/progress.h"
#include "core/report.h"
#include "eval/battery.h"

namespace spool::cli {

namespace {

struct BatteryArguments {
    std::string name;
    ModelArguments model;
    MemoryArguments memory;
    SamplerOptions sampler;
    BatteryOptions options;
    std::string reasoning = "auto";
    std::string data;
    std::string report;
    std::string results;
    size_t limit = 0;
    size_t turns = 5;
    size_t chains = 1;
};

std::vector<Problem> problems_of(const BatteryArguments& arguments) {
    std::vector<Problem> problems;
    if (arguments.name == "battery") {
        problems = battery_problems();
    } else if (arguments.name == "rally") {
        for (size_t chain = 0; chain < arguments.chains; ++chain) {
            problems.push_back(rally_chain(chain, arguments.turns));
        }
    } else {
        problems = read_problems(arguments.data);
    }
    if (arguments.limit > 0 && problems.size() > arguments.limit) {
        problems.resize(arguments.limit);
    }
    return problems;
}

Json identity_of(const BatteryArguments& arguments, const MemorySettings& memory, const Model& model) {
    const SamplerOptions& s = arguments.sampler;
    return {{"eval", arguments.name},
            {"model", model.facts().description},
            {"bundle", arguments.model.bundle},
            {"data", arguments.data},
            {"strategy", to_string(memory.strategy)},
            {"window", memory.window},
            {"chunk", memory.chunk},
            {"max_distant", memory.max_distant},
            {"max_slots", memory.max_slots},
            {"turns", arguments.name == "rally" ? arguments.turns : 0},
            {"reasoning", arguments.reasoning},
            {"tokens", arguments.options.rules.max_tokens},
            {"seconds", arguments.options.rules.max_seconds},
            {"retries", arguments.options.rules.retries},
            {"temperature", s.temperature},
            {"top_k", s.top_k},
            {"top_p", s.top_p},
            {"min_p", s.min_p},
            {"seed", s.seed}};
}

void print_summary(const BatteryArguments& arguments, const std::vector<Attempt>& attempts) {
    const BatterySummary summary = summarise(attempts);
    const auto row = [](const char* name, const Interval& value, double factor, const char* unit) {
        fmt::print("  {:<12}{:8.1f}{}  [{:.1f}, {:.1f}]\n", name, factor * value.value, unit,
                   factor * value.lo, factor * value.hi);
    };
    fmt::print("{}: {} attempts [95% bootstrap]\n", arguments.name, attempts.size());
    row("right", summary.accuracy, 100, "%");
    row("ended", summary.termination, 100, "%");
    row("tokens", summary.tokens, 1, " ");
    if (arguments.name == "rally") {
        row("lost at turn", summary.lost_at, 1, " ");
    }
}

int run(BatteryArguments& arguments, const Global& global) {
    catch_interrupts();
    ReportFile page(arguments.report);
    const std::vector<Problem> problems = problems_of(arguments);
    const Loaded loaded = load(arguments.model);
    const Bundle* bundle = loaded.bundle_or_null();
    const MemorySettings memory = arguments.memory.settings(bundle, *loaded.model);
    const ChatTemplate chat(*loaded.model);
    const Json identity = identity_of(arguments, memory, *loaded.model);

    Progress progress("eval " + arguments.name, problems.size() * arguments.options.samples);
    BatteryOptions options = arguments.options;
    options.pool = pool_options(arguments.model, memory);
    options.results = arguments.results;
    options.interrupted = &interrupted();
    options.on_attempt = [&](size_t done, size_t /*total*/) {
        progress.update(done);
        return !interrupted();
    };
    const auto choosers = [&](const Problem& /*problem*/, uint32_t sample, const Tokenizer& tokenizer) {
        SamplerOptions sampling = arguments.sampler;
        sampling.seed += sample;
        return std::make_unique<Sampler>(tokenizer, sampling);
    };
    const std::vector<Attempt> attempts =
        run_battery(*loaded.model, bundle, chat, reasoning_format(arguments.reasoning, chat), problems,
                    choosers, identity, options);
    progress.finish();
    page.write(battery_report("spool eval " + arguments.name, attempts, identity));
    if (global.json) {
        Json json = to_json(summarise(attempts));
        json["settings"] = identity;
        json["attempts"] = Json::array();
        for (const Attempt& attempt : attempts) {
            json["attempts"].push_back(to_json(attempt));
        }
        print_json(json);
    } else {
        print_summary(arguments, attempts);
    }
    return interrupted() ? exit_interrupted : exit_success;
}

void add(CLI::App& eval, Global& global, const std::string& name, const std::string& text) {
    auto arguments = std::make_shared<BatteryArguments>();
    arguments->name = name;
    arguments->sampler.temperature = 0.6F;
    CLI::App* command = eval.add_subcommand(name, text);
    command->footer(
        "Example: spool eval " + name + " -m model.gguf --samples 4" +
        (name == "battery" || name == "rally" ? "" : " --data " + name + ".jsonl.gz --limit 100") +
        " --report " + name + ".html");
    arguments->model.add_to(*command);
    arguments->memory.add_to(*command);
    const auto option = [&](const std::string& names, auto& value, const std::string& help) {
        return command->add_option(names, value, help)->capture_default_str()->group("Problems");
    };
    option("--samples", arguments->options.samples, "attempts at each problem")->check(CLI::PositiveNumber);
    option("--limit", arguments->limit, "only the first N problems (0: all)");
    if (name == "rally") {
        option("--turns", arguments->turns, "length of a chain")->check(CLI::PositiveNumber);
        option("--chains", arguments->chains, "chains; the first of five turns is 3 + 5, - 2, x 2, - 4, / 2")
            ->check(CLI::PositiveNumber);
    } else if (name != "battery") {
        option("--data", arguments->data, "JSON Lines (or .gz)")->required();
    }
    command
        ->add_flag("--math,!--no-math", arguments->options.math,
                   "ask for step by step reasoning and a \\boxed{} answer")
        ->group("Problems");
    option("-n,--predict", arguments->options.rules.max_tokens, "tokens in a reply, thinking included");
    option("--max-seconds", arguments->options.rules.max_seconds,
           "a reply that takes longer is drawn again; 0: any");
    option("--retries", arguments->options.rules.retries, "times a reply that cannot stand is drawn again");
    option("--reasoning", arguments->reasoning, "auto (as the template says) | think | none");
    option("--results", arguments->results,
           "write every attempt to this file as it is made; attempts found there are not made again");
    option("--report", arguments->report, "write a page of plots (HTML)");
    add_sampler_options(*command, arguments->sampler);
    command->callback([arguments, &global] { global.exit_code = run(*arguments, global); });
}

} // namespace

void add_eval_batteries(CLI::App& eval, Global& global) {
    add(eval, global, "battery", "six short problems, graded on the last \\boxed{}");
    add(eval, global, "gsm8k", "grade-school problems");
    add(eval, global, "math500", "competition problems");
    add(eval, global, "mathchat", "problems with follow-up questions");
    add(eval, global, "rally", "chains of sums, each of which needs the last result");
}

} // namespace spool::cli
