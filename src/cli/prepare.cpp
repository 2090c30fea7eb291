// `spool prepare`: corpora, or synthetic traces, to token shards.
#include "corpus/prepare.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include "cli/chat_encoder.h"
#include "cli/command.h"
#include "cli/synthetic_arguments.h"
#include "core/error.h"
#include "core/log.h"
#include "core/progress.h"
#include "llm/model.h"

namespace spool::cli {

namespace {

struct PrepareArguments {
    std::string model;
    std::vector<std::string> paths; ///< SOURCE... DEST
    std::string synthetic;          ///< the task; empty: natural
    SyntheticArguments traces;
    PrepareOptions options;
};

/// What was asked for, checked before the model is loaded.
void resolve(PrepareArguments& arguments) {
    arguments.options.destination = arguments.paths.back();
    arguments.paths.pop_back();
    if (arguments.synthetic.empty()) {
        if (arguments.paths.empty()) {
            fail(ErrorCode::invalid_argument,
                 "prepare takes at least one SOURCE and then DEST; or --synthetic TASK and DEST alone");
        }
        return;
    }
    if (!arguments.paths.empty()) {
        fail(ErrorCode::invalid_argument,
             "--synthetic makes its own traces: give DEST alone, and text to fill with as "
             "--filler FILE");
    }
}

std::unique_ptr<Model> load_vocabulary(const std::string& path) {
    ModelOptions options;
    options.path = path;
    options.gpu_layers = 0;
    options.on_progress = [](float /*done*/) { return !interrupted(); };
    return std::make_unique<Model>(options);
}

Json to_json(const PrepareReport& report, const std::filesystem::path& destination) {
    Json splits = Json::object();
    for (const auto& [name, split] : report.index["splits"].items()) {
        splits[name] = {
            {"traces", split["traces"]}, {"tokens", split["tokens"]}, {"shards", split["shards"].size()}};
    }
    return {
        {"destination", destination.string()}, {"splits", splits}, {"rejected", report.index["rejected"]}};
}

void print_report(const PrepareReport& report, const std::filesystem::path& destination) {
    for (const auto& [name, split] : report.index["splits"].items()) {
        fmt::print("{:<6}{:>10} traces {:>14} tokens {:>6} shards\n", name, split["traces"].get<uint64_t>(),
                   split["tokens"].get<uint64_t>(), split["shards"].size());
    }
    for (const auto& [reason, entry] : report.rejected) {
        fmt::print("left out {:>6}  {:<17} first {}\n", entry.count, reason, entry.example);
    }
    fmt::print("wrote {}\n", (destination / "index.json").string());
}

void run(PrepareArguments& arguments, const Global& global) {
    catch_interrupts();
    resolve(arguments);
    const auto made_up = arguments.synthetic.empty()
                             ? std::nullopt
                             : std::optional(arguments.traces.options(arguments.synthetic));
    const std::unique_ptr<Model> model = load_vocabulary(arguments.model);
    const ChatEncoder encoder(*model);
    PrepareOptions& options = arguments.options;
    options.base = model->identity();
    options.vocab_size = model->facts().vocab_size;
    if (options.threads == 0) {
        options.threads = std::max(1U, std::thread::hardware_concurrency());
    }

    std::optional<Progress> progress;
    options.on_progress = [&](uint64_t done, uint64_t total) {
        const bool bytes = !made_up;
        if (!progress) {
            progress.emplace(bytes ? "prepare (KiB)" : "prepare", bytes ? total / 1024 + 1 : total);
        }
        progress->update(bytes ? done / 1024 : done);
        return !interrupted();
    };
    const PrepareReport report =
        !made_up ? prepare(std::vector<std::filesystem::path>(arguments.paths.begin(), arguments.paths.end()),
                           options, encoder)
                 : prepare(*made_up, options, encoder);
    progress.reset();
    if (report.index["splits"]["train"]["traces"] == 0) {
        log_warning("no trace is in the train split; a smaller --val-share leaves some");
    }
    if (global.json) {
        print_json(to_json(report, options.destination));
    } else {
        print_report(report, options.destination);
    }
}

} // namespace

void add_prepare(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<PrepareArguments>();
    PrepareOptions& options = arguments->options;
    options.threads = 0;
    arguments->traces.facts = 4;
    CLI::App* command =
        app.add_subcommand("prepare", "turn chains of thought into token shards for training");
    command->footer(
        "A SOURCE is JSON Lines (plain, gzip, zstd). What a record may look like:\n"
        "  {\"prompt\": .., \"think\": .., \"answer\": ..}\n"
        "  {\"messages\": [{\"role\": .., \"content\": ..}], \"reasoning\": .., \"answer\": ..}     "
        "dolphin-r1\n"
        "  {\"system\": .., \"conversations\": [{\"from\": .., \"value\": ..}]}                   "
        "OpenThoughts\n"
        "  {\"problem\": .., \"generations\": [..], \"correctness_math_verify\": [..]}          OpenR1-Math\n"
        "DEST appears when everything is written; Ctrl-C leaves nothing behind.\n"
        "Examples:\n"
        "  spool prepare -m model.gguf train-*.jsonl.gz shards/ --min-tokens 2000\n"
        "  spool prepare -m model.gguf open-r1.jsonl.zst shards/ --min-tokens 4000 --val-share 0.01\n"
        "  spool prepare -m model.gguf shards/ --synthetic recall --facts 8 --distance 500-4000 --samples "
        "5000 \\\n"
        "      --filler train.jsonl.gz --seed 1");
    command
        ->add_option("-m,--model", arguments->model,
                     "GGUF of the model whose tokens and chat template are used")
        ->required();
    command->add_option("PATHS", arguments->paths, "SOURCE... DEST: files to read, then the folder to write")
        ->required()
        ->type_name("");
    command
        ->add_option("--min-tokens", options.min_tokens,
                     "leave shorter traces out; upstream trained on 4000 and more")
        ->capture_default_str();
    command->add_option("--max-tokens", options.max_tokens, "leave longer traces out (default: none)");
    command
        ->add_option("--val-share", options.val_share,
                     "share of the prompts, by their hash, kept for validation")
        ->capture_default_str();
    command->add_option("--limit", options.limit, "stop after that many traces (default: all)");
    command->add_option("--shard-tokens", options.shard_tokens, "tokens in one file, at most 67108864")
        ->capture_default_str();
    command->add_option("-t,--threads", options.threads, "threads that tokenise (default: all cores)");
    command->add_flag("--overwrite", options.overwrite, "replace the shards that are at DEST");
    const char* group = "Synthetic";
    command->add_option("--synthetic", arguments->synthetic, "make traces up: recall | ledger | rally")
        ->group(group);
    arguments->traces.add_to(*command, group);
    command->callback([arguments, &global] { run(*arguments, global); });
}

} // namespace spool::cli
