// The subcommands of `spool eval`.
#pragma once

#include <CLI/CLI.hpp>

namespace spool::cli {

struct Global;

void add_eval_ce(CLI::App& eval, Global& global);
void add_eval_recall(CLI::App& eval, Global& global);
void add_eval_endless(CLI::App& eval, Global& global);
void add_eval_batteries(CLI::App& eval, Global& global);

} // namespace spool::cli
