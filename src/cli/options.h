// Option groups that several subcommands have in common, under llama.cpp's names where it has them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "context/memory_request.h"
#include "context/session.h"
#include "hub/repository.h"
#include "llm/sampler.h"

namespace spool::cli {

/// How a hub is asked.
struct HubArguments {
    HubOptions options;

    void add_to(CLI::App& command);
};

/// Model, bundle, threads, cache types.
struct ModelArguments {
    std::string model;
    std::string hub_model;
    std::string hub_file;
    HubArguments hub;
    std::string bundle;
    int threads = 0;
    int gpu_layers = -1;
    uint32_t batch = 512;
    std::string key_type = "f16";
    std::string value_type = "f16";
    bool no_mmap = false;
    bool no_flash_attention = false;

    void add_to(CLI::App& command);
};

/// Strategy and its sizes; what is not given comes from the bundle, else from the defaults.
struct MemoryArguments {
    std::optional<std::string> strategy;
    std::optional<std::string> refresh;
    MemoryRequest request;

    void add_to(CLI::App& command);
    /// `bundle` may be nullptr.
    MemorySettings settings(const Bundle* bundle, const Model& model) const;
};

void add_sampler_options(CLI::App& command, SamplerOptions& options);

/// A model, and the bundle checked to fit it.
struct Loaded {
    std::unique_ptr<Model> model;
    std::optional<Bundle> bundle;

    const Bundle* bundle_or_null() const { return bundle ? &*bundle : nullptr; }
};

/// Loads with a progress line. Throws Error.
Loaded load(const ModelArguments& arguments);

/// The pool for `arguments`; prints the memory it reserves.
PoolOptions pool_options(const ModelArguments& arguments, const MemorySettings& memory);

/// "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl". Throws Error{invalid_argument}.
ggml_type cache_type(const std::string& name);

} // namespace spool::cli
