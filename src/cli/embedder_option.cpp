#include "cli/embedder_option.h"

#include <filesystem>

#include "core/log.h"

namespace spool::cli {

namespace {

constexpr const char* default_file = "models/all-MiniLM-L6-v2.gguf";

} // namespace

void EmbedderArguments::add_to(CLI::App& command, const std::string& group) {
    command
        .add_option("--embedder", path,
                    std::string("GGUF of a text embedder, or none (default: ") + default_file +
                        " if it is there; SPOOL_EMBEDDER)")
        ->envname("SPOOL_EMBEDDER")
        ->group(group);
}

std::shared_ptr<Embedder> EmbedderArguments::load(int threads, int gpu_layers) const {
    if (path == "none" || (path.empty() && !std::filesystem::exists(default_file))) {
        return nullptr;
    }
    auto embedder = std::make_shared<Embedder>(EmbedderOptions{
        .path = path.empty() ? default_file : path, .threads = threads, .gpu_layers = gpu_layers});
    log_info("embedder: {}, {} dimensions, texts of up to {} tokens", embedder->model().path().string(),
             embedder->width(), embedder->max_tokens());
    return embedder;
}

} // namespace spool::cli
