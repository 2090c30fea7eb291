// `spool eval endless`: hundreds of turns, beside llama.cpp with context shift.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/eval.h"
#include "cli/options.h"
#include "core/progress.h"
#include "core/report.h"
#include "eval/endless_chat.h"

namespace spool::cli {

namespace {

struct EndlessArguments {
    ModelArguments model;
    MemoryArguments memory;
    EndlessOptions options;
    std::string report;
};

int run(const EndlessArguments& arguments, const Global& global) {
    catch_interrupts();
    ReportFile page(arguments.report);
    const Loaded loaded = load(arguments.model);
    const MemorySettings memory = arguments.memory.settings(loaded.bundle_or_null(), *loaded.model);
    EndlessOptions options = arguments.options;
    options.pool = pool_options(arguments.model, memory);
    Progress progress("turns", options.turns);
    options.on_turn = [&](size_t done) {
        progress.update(done);
        return !interrupted();
    };
    const auto turns =
        run_endless_chat(*loaded.model, loaded.bundle_or_null(), ChatTemplate(*loaded.model), options);
    progress.finish();
    const Json settings = {{"model", loaded.model->facts().description},
                           {"bundle", arguments.model.bundle},
                           {"strategy", to_string(memory.strategy)},
                           {"window", memory.window},
                           {"chunk", memory.chunk},
                           {"max_distant", memory.max_distant},
                           {"reply", options.reply}};
    Json json = summarise(turns);
    page.write(endless_report(turns, settings));
    if (global.json) {
        json["settings"] = settings;
        print_json(json);
    } else {
        fmt::print(
            "{} turns, {} tokens, {} cells\n"
            "  a turn       {:.3f} s in the second quarter, {:.3f} s in the last: {:.3f} x\n"
            "  llama.cpp    {:.3f} s a turn with context shift in as many cells; spool's speed {:.3f} x\n"
            "  resident     {:+.1f} MiB since the first quarter\n",
            json["turns"].get<size_t>(), json["tokens"].get<size_t>(), json["cells"].get<size_t>(),
            json["seconds_second_quarter"].get<double>(), json["seconds_last_quarter"].get<double>(),
            json["flat"].get<double>(), json["peer_seconds_last_quarter"].get<double>(),
            json["speed_beside_peer"].get<double>(), json["rss_growth_bytes"].get<double>() / (1 << 20U));
    }
    return interrupted() ? exit_interrupted : exit_success;
}

} // namespace

void add_eval_endless(CLI::App& eval, Global& global) {
    auto arguments = std::make_shared<EndlessArguments>();
    CLI::App* command =
        eval.add_subcommand("endless", "a chat of hundreds of turns beside llama.cpp with context shift");
    command->footer(
        "Example: spool eval endless -m model.gguf --window 512 --turns 200 --report endless.html");
    arguments->model.add_to(*command);
    arguments->memory.add_to(*command);
    const auto option = [&](const std::string& names, auto& value, const std::string& help) {
        return command->add_option(names, value, help)->capture_default_str()->group("Turns");
    };
    option("--turns", arguments->options.turns, "turns, 8 at least");
    option("--text", arguments->options.text, "bytes of a user's text, at least");
    option("-n,--predict", arguments->options.reply, "tokens of a reply")->check(CLI::PositiveNumber);
    option("--report", arguments->report, "write a page of plots (HTML)");
    add_sampler_options(*command, arguments->options.sampler);
    command->callback([arguments, &global] { global.exit_code = run(*arguments, global); });
}

} // namespace spool::cli
