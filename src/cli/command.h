// What all subcommands share: how they register, where results go, how they end.
#pragma once

#include <atomic>
#include <string_view>

#include <CLI/CLI.hpp>

#include "core/json.h"

namespace spool::cli {

/// Exit codes, as documented in `spool --help`.
constexpr int exit_success = 0;
constexpr int exit_failure = 1;
constexpr int exit_usage = 2;
constexpr int exit_interrupted = 130;

/// Options before or after any subcommand.
struct Global {
    bool json = false;
    bool verbose = false;
    bool quiet = false;
    int exit_code = exit_success; ///< set by the subcommand that ran
};

void add_run(CLI::App& app, Global& global);
void add_chat(CLI::App& app, Global& global);
void add_serve(CLI::App& app, Global& global);
void add_eval(CLI::App& app, Global& global);
void add_bench(CLI::App& app, Global& global);
void add_search(CLI::App& app, Global& global);
void add_pull(CLI::App& app, Global& global);
void add_convert(CLI::App& app, Global& global);
void add_prepare(CLI::App& app, Global& global);
void add_init(CLI::App& app, Global& global);
void add_inspect(CLI::App& app, Global& global);
void add_completion(CLI::App& app, Global& global);

/// Prints one JSON object on stdout.
void print_json(const Json& object);

/// Set by the first Ctrl-C (SIGINT, SIGTERM); the second one ends the process at once.
const std::atomic<bool>& interrupted();
/// SIGTERM came: end, even where Ctrl-C only stops what is going on.
bool told_to_end();
/// Installs the handler. Call before long work that saves what it has.
void catch_interrupts();
/// Makes the next Ctrl-C a first one again.
void clear_interrupt();

} // namespace spool::cli
