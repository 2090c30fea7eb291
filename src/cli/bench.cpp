// `spool bench`: one table of speeds, each beside its peer.
#include <filesystem>
#include <optional>
#include <unistd.h>

#include <fmt/core.h>

#include "cli/command.h"
#include "cli/options.h"
#include "core/error.h"
#include "core/log.h"
#include "eval/speed.h"

namespace spool::cli {

namespace {

struct BenchArguments {
    ModelArguments model;
    std::vector<std::string> only;
    size_t tokens = 1536;
    size_t flat_tokens = 20000;
    std::string peer_program;
    std::string command;
};

void print_header() {
    fmt::print("{:<38}{:>10} {:<6}{:>10}{:>8}  {:<10}{}\n", "what", "spool", "", "peer", "ratio", "wanted",
               "peer is");
}

void print_row(const SpeedRow& row) {
    fmt::print("{:<38}{:>10.4g} {:<6}", row.name, row.value, row.unit);
    if (row.peer > 0) {
        fmt::print("{:>10.4g}{:>8.3f}", row.peer, row.ratio);
    } else {
        fmt::print("{:>10}{:>8}", "", "");
    }
    fmt::print("  {:<10}{}\n", row.wanted, row.note);
    std::fflush(stdout);
}

Json to_json(const SpeedRow& row) {
    return {{"name", row.name},   {"value", row.value},   {"unit", row.unit}, {"peer", row.peer},
            {"ratio", row.ratio}, {"wanted", row.wanted}, {"note", row.note}};
}

int run_bench(const BenchArguments& arguments, const Global& global) {
    catch_interrupts();
    const Loaded loaded = load(arguments.model);
    const Bundle* bundle = loaded.bundle_or_null();
    SpeedOptions options;
    options.pool = pool_options(arguments.model, {});
    options.tokens = arguments.tokens;
    options.cancelled = [] { return interrupted().load(); };

    Json rows = Json::array();
    if (!global.json) {
        fmt::print("{}\n", arguments.command);
        print_header();
    }
    const auto add = [&](const std::vector<SpeedRow>& measured) {
        for (const SpeedRow& row : measured) {
            rows.push_back(to_json(row));
            if (!global.json) {
                print_row(row);
            }
        }
    };
    const auto wanted = [&](const std::string& name) {
        return !interrupted() &&
               (arguments.only.empty() || std::ranges::find(arguments.only, name) != arguments.only.end());
    };
    const bool slots = bundle != nullptr && bundle->pooler.empty();
    if (wanted(slots ? "slots" : "carry")) {
        std::vector<const Bundle*> bundles = {bundle};
        // What a model that the adapter was merged into runs at: both sides without its extra products.
        std::optional<Bundle> merged;
        if (bundle != nullptr && bundle->lora) {
            merged = *bundle;
            merged->lora.reset();
            bundles.push_back(&*merged);
        }
        for (const Bundle* measured : bundles) {
            for (const uint32_t chunk : {64U, 256U}) {
                if (!interrupted()) {
                    add(measure_strategy(*loaded.model, measured, options, Layout::carry, chunk));
                }
            }
        }
    }
    if (wanted("rebuild") && bundle != nullptr && !slots) {
        add(measure_strategy(*loaded.model, bundle, options, Layout::rebuild, 64));
    }
    if (wanted("load")) {
        if (arguments.peer_program.empty()) {
            log_info("load: skipped, pass --peer PATH-TO-llama-simple (make bench does)");
        } else {
            const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
            const std::string model = loaded.model->path().string();
            add({measure_programs(
                "load and first token",
                {self, "run", "-m", model, "-p", "Hello my name is", "-n", "1", "--temp", "0"},
                {arguments.peer_program, "-m", model, "-n", "1", "Hello my name is"}, 7)});
        }
    }
    if (wanted("pooler")) {
        add(measure_pooler(*loaded.model, std::filesystem::temp_directory_path(), arguments.model.threads));
    }
    if (wanted("flat")) {
        add(measure_flatness(*loaded.model, bundle, options, arguments.flat_tokens));
    }
    if (global.json) {
        print_json({{"command", arguments.command}, {"rows", rows}});
    }
    return interrupted() ? exit_interrupted : exit_success;
}

} // namespace

void add_bench(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<BenchArguments>();
    CLI::App* command = app.add_subcommand("bench", "measure speed beside llama.cpp's, in one table");
    command->footer("Example: spool bench -m model.gguf --bundle DIR --only carry rebuild");
    arguments->model.add_to(*command);
    command->add_option("--only", arguments->only, "carry, slots, rebuild, load, pooler, flat (default: all)")
        ->check(CLI::IsMember({"carry", "slots", "rebuild", "load", "pooler", "flat"}));
    command->add_option("-n,--tokens", arguments->tokens, "tokens generated per strategy")
        ->capture_default_str();
    command->add_option("--flat-tokens", arguments->flat_tokens, "length of the flatness run")
        ->capture_default_str();
    command->add_option("--peer", arguments->peer_program, "llama.cpp's llama-simple, for the load row");
    command->callback([arguments, &global] {
        arguments->command = "spool bench";
        if (!arguments->model.model.empty()) {
            arguments->command += " -m " + arguments->model.model;
        }
        if (!arguments->model.bundle.empty()) {
            arguments->command += " --bundle " + arguments->model.bundle;
        }
        global.exit_code = run_bench(*arguments, global);
    });
}

} // namespace spool::cli
