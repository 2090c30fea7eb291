// The option that names the text embedder, for the subcommands that use one.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "llm/embedder.h"

namespace spool::cli {

struct EmbedderArguments {
    /// A file, "none", or empty: models/all-MiniLM-L6-v2.gguf, where scripts/fetch-model puts it, if it is
    /// there.
    std::string path;

    void add_to(CLI::App& command, const std::string& group);
    /// Loads it; nullptr for none. Throws Error if a file that was named is not there or no embedder.
    std::shared_ptr<Embedder> load(int threads, int gpu_layers) const;
};

} // namespace spool::cli
