// Options of synthetic traces, for `spool prepare` and `spool eval recall`.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "corpus/synthetic.h"

namespace spool::cli {

struct SyntheticArguments {
    size_t samples = 1000;
    int32_t facts = 1;
    int32_t repeats = 1;
    std::string distance = "1024";
    uint64_t seed = 1;
    std::string filler;

    void add_to(CLI::App& command, const std::string& group);
    /// Throws Error{invalid_argument} for a task or a distance that there is not.
    SyntheticOptions options(const std::string& task) const;
};

} // namespace spool::cli
