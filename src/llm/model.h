// A loaded language model: weights, facts about it, and what it cannot do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "formats/model_identity.h"
#include "llm/token_rows.h"

struct llama_model;

namespace spool {

struct ModelOptions {
    std::filesystem::path path;
    /// Layers offloaded to a GPU; negative: all that fit. Without a GPU backend it has no effect.
    int gpu_layers = -1;
    bool use_mmap = true;
    /// Called with 0..1 while loading; returning false cancels (Error{interrupted}).
    std::function<bool(float)> on_progress;
};

/// Facts read once at load time.
struct ModelFacts {
    std::string architecture; ///< general.architecture
    std::string name;         ///< general.name
    std::string description;  ///< libllama's own, e.g. "llama 135M Q4_1"
    std::string vocab_sha256;
    int64_t width = 0; ///< n_embd, H
    int32_t layers = 0;
    int32_t vocab_size = 0;
    int32_t trained_context = 0;       ///< n_ctx_train
    int32_t sliding_window = 0;        ///< 0: none
    uint64_t bytes = 0;                ///< of all tensors
    uint64_t kv_elements_per_cell = 0; ///< of K and V, all layers
    bool scales_embeddings = false;
};

class Model {
  public:
    /// Checks the file's structure, then loads it. Throws Error{not_found|bad_file|unsupported|interrupted}.
    explicit Model(const ModelOptions& options);
    ~Model();
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    const std::filesystem::path& path() const { return path_; }
    const ModelFacts& facts() const { return facts_; }
    llama_model* handle() const { return handle_.get(); }
    /// As bundles state it.
    BaseIdentity identity() const { return {facts_.architecture, facts_.name, facts_.vocab_sha256}; }
    /// SHA-256 over the file's size, its metadata and the start and end of its weights: tells models, and
    /// quantisations of one model, apart without reading gigabytes.
    std::string fingerprint() const;
    /// Throws Error{unsupported} where the rows cannot serve as inputs (no table, scaled embeddings).
    const TokenRows& token_rows() const;

    /// The reason why no part of the past can be dropped or replaced in this model's cache, or nothing.
    std::optional<std::string> cannot_evict(uint32_t window) const;

  private:
    struct Deleter {
        void operator()(llama_model* model) const;
    };
    std::filesystem::path path_;
    ModelFacts facts_;
    std::optional<TokenRows> rows_;
    std::string rows_problem_;
    std::unique_ptr<llama_model, Deleter> handle_;
};

} // namespace spool
