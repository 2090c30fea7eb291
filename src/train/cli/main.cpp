// spool-train: run, eval, full-ce, export.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "core/error.h"
#include "core/log.h"
#include "core/progress.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/export.h"
#include "train/reader.h"
#include "train/trace_stream.h"
#include "train/trainer.h"

namespace spool::train {

namespace {

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;
constexpr int exit_interrupted = 130;

std::atomic<bool> stop_requested{false};

/// The first Ctrl-C lets the step end and saves; the second ends the process at once.
void on_interrupt(int number) {
    if (stop_requested.exchange(true)) {
        std::signal(number, SIG_DFL);
        std::raise(number);
    }
}

/// Every setting as an option of the same name, so that --config files and flags share one list.
void add_settings(CLI::App& app, Settings& settings) {
    app.set_config("--config", "", "TOML file of the options below; flags override it");
    visit_settings(settings, [&](const char* name, auto& value, const char* help) {
        using Value = std::remove_cvref_t<decltype(value)>;
        const std::string flag = std::string("--") + name;
        if constexpr (std::is_same_v<Value, Stage>) {
            app.add_option_function<std::string>(
                flag, [&value](const std::string& text) { value = stage_from_string(text); }, help);
        } else if constexpr (std::is_same_v<Value, MemoryKind>) {
            app.add_option_function<std::string>(
                flag, [&value](const std::string& text) { value = memory_from_string(text); }, help);
        } else if constexpr (std::is_same_v<Value, Layout>) {
            app.add_option_function<std::string>(
                flag, [&value](const std::string& text) { value = layout_from_string(text); }, help);
        } else if constexpr (std::is_same_v<Value, bool>) {
            app.add_flag(flag, value, help);
        } else {
            app.add_option(flag, value, help)->capture_default_str();
        }
    });
}

/// A reader with the weights to look at: those of --from, else of the newest checkpoint in --out.
Reader finished_reader(Settings& settings, const GgufFile& file) {
    if (settings.from.empty()) {
        const auto newest = latest_checkpoint(settings.out);
        if (!newest) {
            fail(ErrorCode::not_found, "{}: holds no checkpoint; train first, or name weights with --from",
                 settings.out.string());
        }
        settings.from = *newest;
    }
    settings.bf16 = false; // what is measured or written is not rounded
    return make_reader(settings, file);
}

Json evaluate(Settings settings, const std::string& split, size_t limit, bool full_only) {
    check(settings);
    const GgufFile file(settings.model);
    Reader reader = finished_reader(settings, file);
    const TraceStream stream(settings.data, split, vocab_sha256(file), settings.seed);
    std::vector<TraceView> traces;
    for (size_t i = 0; i < stream.size() && traces.size() < limit; ++i) {
        TraceView trace = stream.trace(i);
        // Only traces that reach past the window can tell anything.
        if (trace.tokens.size() >
            static_cast<size_t>(trace.prompt) + settings.window_max + size_t{2} * settings.chunk) {
            traces.push_back(std::move(trace));
        }
    }
    if (traces.empty()) {
        fail(ErrorCode::invalid_argument,
             "no trace of the split '{}' is longer than window and two chunks; lower "
             "--window-max or prepare longer traces",
             split);
    }
    EvaluationOptions options = evaluation_options(settings);
    options.all_arms = !full_only;
    options.full_only = full_only;
    options.seed = settings.seed;
    Progress progress("evaluating", traces.size());
    options.on_trace = [&](size_t done) {
        progress.update(done);
        return !stop_requested;
    };
    return summarise(score_traces(reader, traces, options), options.memory);
}

void print_summary(const Json& summary) {
    fmt::print("{} traces, nats a token from raw token {} on:\n", summary["traces"].get<size_t>(),
               summary["deep_from"].get<size_t>());
    for (const auto& [arm, value] : summary["deep"].items()) {
        fmt::print("  {:<13} {:.4f}  [{:.4f}, {:.4f}]", arm, value["mean"].get<double>(),
                   value["lo"].get<double>(), value["hi"].get<double>());
        if (summary.contains("answers")) {
            const Json& answers = summary["answers"][arm];
            fmt::print("   answers right {:.1f}%, their tokens {:.1f}%",
                       100 * answers["exact"]["mean"].get<double>(),
                       100 * answers["digits"]["mean"].get<double>());
        }
        fmt::print("\n");
    }
    if (summary.contains("recovered") && summary["recovered"]["value"].is_number()) {
        fmt::print("recovered {:.3f} [{:.3f}, {:.3f}]\n", summary["recovered"]["value"].get<double>(),
                   summary["recovered"]["lo"].get<double>(), summary["recovered"]["hi"].get<double>());
    }
}

ggml_type type_named(const std::string& name) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_1}) {
        if (name == ggml_type_name(type)) {
            return type;
        }
    }
    fail(ErrorCode::invalid_argument, "type '{}': expected f32, f16, q8_0 or q4_1", name);
}

struct ExportArguments {
    std::filesystem::path bundle;
    std::string pooler = "f16";
    std::string adapter = "f16";
    std::filesystem::path merged;
    std::string merged_type = "q8_0";
    std::filesystem::path recovered;
};

Json export_bundle(Settings settings, const ExportArguments& arguments) {
    if (arguments.bundle.empty() && arguments.merged.empty()) {
        fail(ErrorCode::invalid_argument, "nothing to write: give --bundle FOLDER, --merged FILE or both");
    }
    const GgufFile file(settings.model);
    Reader reader = finished_reader(settings, file);
    Json result = Json::object();
    if (!arguments.merged.empty()) {
        write_model(reader, file, arguments.merged, type_named(arguments.merged_type));
        result["model"] = arguments.merged.string();
    }
    if (!arguments.bundle.empty()) {
        ExportOptions options{.pooler = type_named(arguments.pooler),
                              .adapter = type_named(arguments.adapter),
                              .max_position = settings.max_tokens,
                              .recovered = nullptr};
        if (!arguments.recovered.empty()) {
            options.recovered = Json::parse(read_text(arguments.recovered));
        }
        write_bundle(reader, settings, file, arguments.bundle, options);
        result["bundle"] = arguments.bundle.string();
    }
    return result;
}

int main_checked(int argc, char** argv) {
    Settings settings;
    bool json = false;
    bool quiet = false;
    int exit_code = 0;
    CLI::App app("spool-train: teaches a model to read its own compressed past");
    app.require_subcommand(1);
    app.fallthrough();
    app.add_flag("--json", json, "print one JSON object on stdout");
    app.add_flag("-q,--quiet", quiet, "show warnings only");
    app.footer(
        "Exit codes: 0 success, 1 failure, 2 wrong command line, 130 stopped by Ctrl-C (checkpoint saved).\n"
        "Try: spool prepare traces.jsonl shards -m model.gguf\n"
        "     spool-train run --model model.gguf --data shards --out run --steps 500");
    add_settings(app, settings);
    app.parse_complete_callback([&] { set_log_level(quiet ? LogLevel::warning : LogLevel::info); });
    const auto print = [&](const Json& result, auto&& as_text) {
        if (json) {
            fmt::print("{}\n", result.dump());
        } else {
            as_text(result);
        }
    };

    CLI::App* run = app.add_subcommand("run", "train, or go on with the run in --out");
    run->callback([&] {
        const Json result = train(settings, stop_requested);
        print(result, [](const Json& r) {
            fmt::print("step {}, loss {:.4f}, {} trained; {}\n", r["steps"].get<uint64_t>(),
                       r["loss"].get<double>(), format_duration(r["seconds"].get<double>()),
                       r["checkpoint"].get<std::string>());
        });
        exit_code = result["interrupted"].get<bool>() ? exit_interrupted : 0;
    });

    std::string split = "val";
    size_t limit = 64;
    CLI::App* eval = app.add_subcommand("eval", "all arms on validation traces, with intervals");
    eval->add_option("--split", split, "train or val")->capture_default_str();
    eval->add_option("--traces", limit, "at most so many traces")->capture_default_str();
    eval->callback([&] {
        print(evaluate(settings, split, limit, false), print_summary);
        exit_code = stop_requested ? exit_interrupted : 0;
    });

    CLI::App* full = app.add_subcommand("full-ce", "cross-entropy with the full context, by distance");
    full->add_option("--split", split, "train or val")->capture_default_str();
    full->add_option("--traces", limit, "at most so many traces")->capture_default_str();
    full->callback([&] { print(evaluate(settings, split, limit, true), print_summary); });

    ExportArguments arguments;
    CLI::App* out = app.add_subcommand("export", "write a bundle for spool, or the merged model");
    out->add_option("--bundle", arguments.bundle,
                    "folder for pooler.gguf or slots.gguf, lora.gguf and bundle.json");
    out->add_option("--pooler-type", arguments.pooler, "f32, f16 or q8_0")->capture_default_str();
    out->add_option("--adapter-type", arguments.adapter, "f32 or f16")->capture_default_str();
    out->add_option("--merged", arguments.merged, "GGUF file for the model with its trained weights");
    out->add_option("--merged-type", arguments.merged_type, "f32, f16, q8_0 or q4_1")->capture_default_str();
    out->add_option("--recovered", arguments.recovered, "JSON file of measured figures for bundle.json");
    out->callback([&] {
        print(export_bundle(settings, arguments), [](const Json& r) { fmt::print("{}\n", r.dump()); });
    });

    try {
        std::signal(SIGINT, on_interrupt);
        std::signal(SIGTERM, on_interrupt);
        app.parse(argc, argv);
        return exit_code;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_usage;
    } catch (const Error& error) {
        log_warning("{}", error.what());
        if (json) {
            fmt::print("{}\n", Json{{"error", {{"message", error.what()}}}}.dump());
        }
        return error.code() == ErrorCode::invalid_argument ? exit_usage : exit_failure;
    } catch (const std::bad_alloc&) {
        log_warning("out of memory: lower --batch-tokens or --max-tokens, or give --recompute");
        return exit_failure;
    } catch (const std::exception& error) {
        const std::string text = error.what();
        if (text.find("alloc") != std::string::npos) {
            log_warning("out of memory: lower --batch-tokens or --max-tokens, or give --recompute\n{}", text);
        } else {
            log_warning("{}", text);
        }
        return exit_failure;
    }
}

} // namespace

} // namespace spool::train

int main(int argc, char** argv) {
    try {
        return spool::train::main_checked(argc, argv);
    } catch (...) {
        return 1;
    }
}
