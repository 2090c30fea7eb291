// `spool run`: one prompt, continued in constant memory.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <unistd.h>

#include <fmt/core.h>

#include "cli/command.h"
#include "cli/live_meter.h"
#include "cli/options.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/progress.h"
#include "generation/announce.h"
#include "generation/generate.h"
#include "generation/session_file.h"
#include "llm/chat_template.h"

namespace spool::cli {

namespace {

struct RunArguments {
    ModelArguments model;
    MemoryArguments memory;
    SamplerOptions sampler;
    std::optional<std::string> prompt;
    std::string prompt_file;
    bool chat = false;
    long predict = -1;
    double max_seconds = 0;
    size_t repeat_limit = 6;
    std::vector<std::string> stop;
    std::string grammar_file;
    std::string session_file;
    std::string metrics_file;
    bool special = false;
    bool no_meter = false;
    bool no_display_prompt = false;
};

/// -p, else -f ("-" is stdin), else stdin if it is not a terminal, else nothing.
std::optional<std::string> prompt_text(const RunArguments& arguments) {
    if (arguments.prompt) {
        return arguments.prompt;
    }
    const bool piped = arguments.prompt_file.empty() && ::isatty(STDIN_FILENO) == 0;
    if (arguments.prompt_file == "-" || piped) {
        std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
        return text.empty() && piped ? std::nullopt : std::optional(text);
    }
    if (!arguments.prompt_file.empty()) {
        return read_text(arguments.prompt_file);
    }
    return std::nullopt;
}

std::vector<Token> prompt_tokens(const std::string& text, const RunArguments& arguments, const Model& model,
                                 const Tokenizer& tokenizer, bool first) {
    if (!arguments.chat) {
        return tokenizer.encode(text, first, false);
    }
    const ChatTemplate chat(model);
    const std::string rendered = chat.render({{"user", text}}, true).prompt;
    const bool has_bos = tokenizer.bos() >= 0 && rendered.starts_with(tokenizer.piece(tokenizer.bos(), true));
    return tokenizer.encode(rendered, first && !has_bos, true);
}

void read_prompt(Session& session, std::span<const Token> tokens) {
    Progress progress("reading the prompt", tokens.size());
    constexpr size_t step = 256;
    const size_t whole = tokens.size();
    // The first part must hold everything that is to be pinned.
    size_t take = std::max<size_t>(step, 4096);
    while (!tokens.empty() && !interrupted()) {
        take = std::min(take, tokens.size());
        session.read(tokens.first(take));
        tokens = tokens.subspan(take);
        progress.update(whole - tokens.size());
        take = step;
    }
}

int run(RunArguments& arguments, const Global& global) {
    catch_interrupts();
    if (!arguments.grammar_file.empty()) {
        arguments.sampler.grammar = read_text(arguments.grammar_file);
    }
    const std::optional<std::string> text = prompt_text(arguments);
    const bool resume = !arguments.session_file.empty() && std::filesystem::exists(arguments.session_file);
    if (!text && !resume) {
        fail(ErrorCode::invalid_argument,
             "no prompt: pass -p TEXT or -f FILE, pipe text into stdin, or name a saved --session");
    }

    const Loaded loaded = load(arguments.model);
    const Bundle* bundle = loaded.bundle_or_null();
    const Tokenizer tokenizer(*loaded.model);
    const std::vector<Token> prompt =
        text ? prompt_tokens(*text, arguments, *loaded.model, tokenizer, !resume) : std::vector<Token>();
    if (prompt.empty() && !resume) {
        fail(ErrorCode::invalid_argument, "the prompt is empty: there is nothing to continue");
    }

    MemorySettings memory = arguments.memory.settings(bundle, *loaded.model);
    if (!arguments.memory.request.pin && arguments.session_file.empty()) {
        memory.pin = std::min<uint32_t>(memory.pin, static_cast<uint32_t>(prompt.size()));
    }
    SessionPool pool(*loaded.model, bundle, pool_options(arguments.model, memory));
    const std::unique_ptr<Session> session = pool.open();
    Sampler sampler(tokenizer, arguments.sampler);
    const size_t announced = announce_memory(pool, arguments.session_file.empty() ? 0 : 1);

    Meter meter(pool, *session);
    if (!arguments.metrics_file.empty()) {
        meter.write_to(arguments.metrics_file);
    }
    if (resume) {
        restore_session(*session, pool, bundle, arguments.session_file);
        log_info("resumed {} at token {}", arguments.session_file, session->transcript().tokens.size());
    }
    const bool stream = !global.json;
    if (stream && !arguments.no_display_prompt && !arguments.chat && text) {
        fmt::print("{}", *text);
        std::fflush(stdout);
    }
    read_prompt(*session, prompt);
    sampler.restart(session->transcript().tokens, session->transcript().tokens.size());
    meter.prompt_done();

    LiveMeter live(stream && !arguments.no_meter && !global.quiet);
    GenerationOptions options;
    options.max_tokens = arguments.predict < 0 ? SIZE_MAX : static_cast<size_t>(arguments.predict);
    options.max_seconds = arguments.max_seconds;
    options.repeat_limit = arguments.repeat_limit;
    options.stop = arguments.stop;
    options.show_special = arguments.special;
    options.interrupted = &interrupted();
    options.on_text = [&](std::string_view piece) {
        return !stream || (std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() &&
                           std::fflush(stdout) == 0);
    };
    options.on_token = [&] {
        if (live.due()) {
            live.show(meter.line());
        }
    };
    const Generation generation = generate(*session, sampler, tokenizer, options, &meter);
    if (live.active()) {
        live.show(meter.line());
    }
    if (!arguments.session_file.empty()) {
        save_session(*session, pool, bundle, arguments.session_file);
    }
    meter.finish();

    const MeterSummary summary = meter.summary();
    if (global.json) {
        Json result = {{"text", generation.text},
                       {"stop_reason", to_string(generation.reason)},
                       {"strategy", to_string(pool.settings().strategy)},
                       {"announced_bytes", announced}};
        result.update(to_json(summary));
        print_json(result);
    } else {
        fmt::print("\n");
        std::fflush(stdout);
        log_info("\n{}  ({})", meter.line(), to_string(generation.reason));
        log_info("{} compactions: pooling {:.2f} s, refreshing {:.2f} s; peak resident {}, announced {}",
                 summary.compactions, summary.pool_seconds, summary.refresh_seconds,
                 format_bytes(static_cast<double>(summary.peak_rss_bytes)),
                 format_bytes(static_cast<double>(announced)));
    }
    return generation.reason == StopReason::interrupted ? exit_interrupted : exit_success;
}

} // namespace

void add_run(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<RunArguments>();
    CLI::App* command = app.add_subcommand("run", "continue a prompt in constant memory");
    command->footer("Examples:\n"
                    "  spool run -m model.gguf -p \"Once upon a time\" -n 200\n"
                    "  spool run -m model.gguf --bundle DIR --chat -p \"How many primes below 100?\"\n"
                    "  cat question.txt | spool run -m model.gguf --window 1024 --session chat.spool");
    arguments->model.add_to(*command);
    arguments->memory.add_to(*command);
    command->add_option("-p,--prompt", arguments->prompt, "the prompt")->group("Prompt");
    command->add_option("-f,--file", arguments->prompt_file, "read the prompt from a file; - is stdin")
        ->group("Prompt");
    command->add_flag("--chat", arguments->chat, "wrap the prompt in the model's chat template")
        ->group("Prompt");
    command->add_flag("--no-display-prompt", arguments->no_display_prompt, "print only what is generated")
        ->group("Prompt");
    command
        ->add_option("-n,--predict,--n-predict", arguments->predict,
                     "tokens to generate; -1: until the model ends")
        ->group("Generation");
    command->add_option("--max-seconds", arguments->max_seconds, "stop after this time; 0: no limit")
        ->check(CLI::NonNegativeNumber)
        ->group("Generation");
    command
        ->add_option("--repeat-limit", arguments->repeat_limit,
                     "stop at this many identical tokens in a row; 0: off")
        ->capture_default_str()
        ->group("Generation");
    command
        ->add_option("-r,--stop,--reverse-prompt", arguments->stop,
                     "stop at this text (may be given repeatedly)")
        ->group("Generation");
    command->add_option("--grammar", arguments->sampler.grammar, "GBNF that the text must follow")
        ->group("Generation");
    command->add_option("--grammar-file", arguments->grammar_file, "the same from a file")
        ->group("Generation");
    command->add_flag("--special", arguments->special, "show control tokens as text")->group("Generation");
    command
        ->add_option("--session", arguments->session_file,
                     "resume from this file if it exists; save to it at the end")
        ->group("State");
    command->add_option("--metrics", arguments->metrics_file, "write a JSON line for every compaction")
        ->group("State");
    command->add_flag("--no-meter", arguments->no_meter, "no live line at the bottom of the terminal")
        ->group("State");
    add_sampler_options(*command, arguments->sampler);
    command->callback([arguments, &global] { global.exit_code = run(*arguments, global); });
}

} // namespace spool::cli
