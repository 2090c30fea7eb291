// `spool eval`: the measurements' common name.
#include "cli/eval.h"

#include "cli/command.h"

namespace spool::cli {

void add_eval(CLI::App& app, Global& global) {
    CLI::App* eval = app.add_subcommand("eval", "measure what memory keeps");
    eval->require_subcommand(1);
    add_eval_ce(*eval, global);
    add_eval_recall(*eval, global);
    add_eval_batteries(*eval, global);
    add_eval_endless(*eval, global);
}

} // namespace spool::cli
