// The spool program: parses, dispatches, and turns every error into a message and an exit code.
#include <exception>
#include <map>
#include <new>
#include <string>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <fmt/core.h>

#include "cli/command.h"
#include "core/error.h"
#include "core/log.h"

namespace spool::cli {

namespace {

/// llama.cpp's short options of several letters, which no common parser has.
std::vector<std::string> expand_aliases(int argc, char** argv) {
    const std::map<std::string, std::string> aliases = {
        {"-ngl", "--gpu-layers"},   {"-hf", "--hf-repo"},   {"-hfr", "--hf-repo"},
        {"-hff", "--hf-file"},      {"-hft", "--hf-token"}, {"-ctk", "--cache-type-k"},
        {"-ctv", "--cache-type-v"}, {"-sp", "--special"},   {"-sys", "--system"}};
    std::vector<std::string> arguments;
    for (int i = argc - 1; i > 0; --i) { // CLI11 takes a vector in reverse order
        const auto alias = aliases.find(argv[i]);
        arguments.push_back(alias == aliases.end() ? argv[i] : alias->second);
    }
    return arguments;
}

int report(const Global& global, std::string_view code, const std::string& message, int exit_code) {
    log_warning("{}", message);
    if (global.json) {
        print_json({{"error", {{"code", code}, {"message", message}}}});
    }
    return exit_code;
}

/// Copies of a session's cache come and go by the megabyte, each of another size. glibc would keep them on
/// its heap in ever more pieces; mapped, they are given back.
void give_back_large_blocks() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

int main_checked(int argc, char** argv) {
    give_back_large_blocks();
    Global global;
    CLI::App app("spool: language models that think on in constant memory");
    app.set_version_flag("--version", "spool " SPOOL_VERSION);
    app.require_subcommand(1);
    app.fallthrough();
    app.failure_message(CLI::FailureMessage::simple);
    app.add_flag("--json", global.json, "print one JSON object on stdout");
    app.add_flag("-v,--verbose", global.verbose, "show libllama's log");
    app.add_flag("-q,--quiet", global.quiet, "show warnings only");
    app.footer(
        "Exit codes: 0 success, 1 failure, 2 wrong command line, 130 stopped by Ctrl-C (results kept).\n"
        "Try: spool run -m model.gguf -p \"Once upon a time\" -n 100");
    app.parse_complete_callback([&] {
        set_log_level(global.quiet ? LogLevel::warning : global.verbose ? LogLevel::debug : LogLevel::info);
    });
    add_run(app, global);
    add_chat(app, global);
    add_serve(app, global);
    add_eval(app, global);
    add_bench(app, global);
    add_search(app, global);
    add_pull(app, global);
    add_convert(app, global);
    add_prepare(app, global);
    add_init(app, global);
    add_inspect(app, global);
    add_completion(app, global);

    if (argc > 1 && argv[1][0] != '-' &&
        app.get_subcommands([&](const CLI::App* command) { return command->get_name() == argv[1]; })
            .empty()) {
        return report(global, "invalid_argument",
                      fmt::format("there is no command \"{}\"; see spool --help", argv[1]), exit_usage);
    }
    try {
        app.parse(expand_aliases(argc, argv));
        return global.exit_code;
    } catch (const CLI::ParseError& error) {
        const int code = app.exit(error);
        return code == 0 ? exit_success : exit_usage;
    } catch (const Error& error) {
        const int code = error.code() == ErrorCode::interrupted        ? exit_interrupted
                         : error.code() == ErrorCode::invalid_argument ? exit_usage
                                                                       : exit_failure;
        return report(global, to_string(error.code()), error.what(), code);
    } catch (const std::bad_alloc&) {
        return report(global, "out_of_memory", "out of memory: try a smaller --window, --batch-size or model",
                      exit_failure);
    } catch (const std::exception& error) {
        return report(global, "internal", error.what(), exit_failure);
    }
}

} // namespace

} // namespace spool::cli

int main(int argc, char** argv) {
    try {
        return spool::cli::main_checked(argc, argv);
    } catch (...) {
        return spool::cli::exit_failure;
    }
}
