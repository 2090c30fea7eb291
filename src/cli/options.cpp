#include "cli/options.h"

#include <array>

#include "core/error.h"
#include "core/progress.h"

namespace spool::cli {

void HubArguments::add_to(CLI::App& command) {
    command.add_option("--hf-token", options.token, "for private repositories (default: HF_TOKEN)")
        ->envname("HF_TOKEN")
        ->group("Model");
    command.add_flag("--offline", options.offline, "take from the cache only, fetch nothing")->group("Model");
}

void ModelArguments::add_to(CLI::App& command) {
    auto* file =
        command.add_option("-m,--model", model, "the model, a GGUF file (default: the bundle's model.gguf)")
            ->group("Model");
    auto* repository = command
                           .add_option("--hf-repo", hub_model,
                                       "the model, user/repo[:quant] of a hub, also -hf: fetched once, then "
                                       "taken from the cache")
                           ->excludes(file)
                           ->group("Model");
    command.add_option("--hf-file", hub_file, "this file of --hf-repo, also -hff")
        ->needs(repository)
        ->group("Model");
    hub.add_to(command);
    command.add_option("--bundle", bundle, "a trained bundle's folder (pooler or slots, adapter or model)")
        ->group("Model");
    command.add_option("-t,--threads", threads, "threads (default: physical cores)")
        ->check(CLI::NonNegativeNumber)
        ->group("Model");
    command
        .add_option("--gpu-layers,--n-gpu-layers", gpu_layers,
                    "layers on the GPU, also -ngl (default: all that fit)")
        ->group("Model");
    command.add_option("-b,--batch-size", batch, "tokens in one decode step (default 512)")
        ->check(CLI::Range(1, 65536))
        ->group("Model");
    command.add_option("--cache-type-k", key_type, "type of cached keys, also -ctk (default f16)")
        ->group("Model");
    command.add_option("--cache-type-v", value_type, "type of cached values, also -ctv (default f16)")
        ->group("Model");
    command.add_flag("--no-mmap", no_mmap, "read the model instead of mapping it")->group("Model");
    command.add_flag("--no-flash-attn", no_flash_attention, "plain attention kernels")->group("Model");
}

void MemoryArguments::add_to(CLI::App& command) {
    const char* group = "Memory";
    command
        .add_option("--strategy", strategy,
                    "full | window | soft-prompt | slots (default: the bundle's, else window)")
        ->group(group);
    command.add_option("--refresh", refresh, "rebuild | carry (default: as the bundle was trained)")
        ->group(group);
    command
        .add_option("--pin", request.pin,
                    "first tokens that are never evicted (default: the prompt, at most 256)")
        ->group(group);
    command
        .add_option("--window", request.window,
                    "recent tokens kept verbatim (default: the bundle's, else 512)")
        ->group(group);
    command
        .add_option("--chunk", request.chunk,
                    "tokens between two compactions (default: the bundle's, else 64)")
        ->group(group);
    command
        .add_option("--max-distant", request.max_distant, "tokens the distant buffer keeps (default 4096)")
        ->group(group);
    command.add_option("--max-slots", request.max_slots, "slots kept (default: the bundle's, else 256)")
        ->group(group);
    command
        .add_option("-c,--ctx-size", request.full_length,
                    "--strategy full: cells (default: the model's trained context)")
        ->group(group);
}

MemorySettings MemoryArguments::settings(const Bundle* bundle, const Model& model) const {
    MemoryRequest complete = request;
    if (strategy) {
        complete.strategy = strategy_from_string(*strategy);
    }
    if (refresh) {
        complete.refresh = layout_from_string(*refresh);
    }
    return resolve(complete, bundle, model);
}

void add_sampler_options(CLI::App& command, SamplerOptions& o) {
    const char* group = "Sampling";
    const auto option = [&](const std::string& names, auto& value, const std::string& text) {
        command.add_option(names, value, text)->capture_default_str()->group(group);
    };
    option("--temp,--temperature", o.temperature, "temperature; 0 is greedy");
    option("--top-k", o.top_k, "the k most likely tokens; 0 is off");
    option("--top-p", o.top_p, "the likeliest tokens that sum to p; 1 is off");
    option("--min-p", o.min_p, "tokens at least p times as likely as the likeliest; 0 is off");
    option("--repeat-last-n", o.penalty_last_n, "tokens the penalties look back");
    option("--repeat-penalty", o.repeat_penalty, "1 is off");
    option("--presence-penalty", o.presence_penalty, "0 is off");
    option("--frequency-penalty", o.frequency_penalty, "0 is off");
    option("--dry-multiplier", o.dry_multiplier, "DRY against repeated phrases; 0 is off");
    option("--dry-base", o.dry_base, "DRY's growth for each further token");
    option("--dry-allowed-length", o.dry_allowed_length, "repeats up to this length are free");
    option("--dry-penalty-last-n", o.dry_penalty_last_n, "tokens DRY looks back");
    command.add_option("--dry-sequence-breaker", o.dry_sequence_breakers, "strings that end a repeat")
        ->group(group);
    option("-s,--seed", o.seed, "seed of the random choices");
    command.add_flag("--ignore-eos", o.ignore_end, "never choose an end token")->group(group);
}

ggml_type cache_type(const std::string& name) {
    constexpr std::array types = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                                  GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                  GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_IQ4_NL};
    std::string names;
    for (const ggml_type type : types) {
        if (name == ggml_type_name(type)) {
            return type;
        }
        names += std::string(names.empty() ? "" : ", ") + ggml_type_name(type);
    }
    fail(ErrorCode::invalid_argument, "unknown cache type \"{}\"; expected one of {}", name, names);
}

namespace {

std::string model_path(const ModelArguments& arguments, const std::optional<Bundle>& bundle) {
    if (!arguments.hub_model.empty()) {
        return fetch_model(arguments.hub_model, arguments.hub_file, arguments.hub.options).string();
    }
    if (arguments.model.empty() && bundle && bundle->model) {
        return bundle->model->string();
    }
    if (arguments.model.empty()) {
        fail(ErrorCode::invalid_argument, "no model: pass --model FILE.gguf or -hf user/repo{}",
             bundle ? "; this bundle holds none of its own" : "");
    }
    return arguments.model;
}

} // namespace

Loaded load(const ModelArguments& arguments) {
    Loaded loaded;
    if (!arguments.bundle.empty()) {
        loaded.bundle = read_bundle(arguments.bundle);
    }
    ModelOptions options;
    options.path = model_path(arguments, loaded.bundle);
    Progress progress("loading " + options.path.string(), 100);
    options.gpu_layers = arguments.gpu_layers;
    options.use_mmap = !arguments.no_mmap;
    options.on_progress = [&](float done) {
        progress.update(static_cast<size_t>(done * 100));
        return true;
    };
    loaded.model = std::make_unique<Model>(options);
    if (loaded.bundle) {
        check_fits(*loaded.bundle, loaded.model->identity());
    }
    return loaded;
}

PoolOptions pool_options(const ModelArguments& arguments, const MemorySettings& memory) {
    PoolOptions options;
    options.memory = memory;
    options.threads = arguments.threads;
    options.batch = arguments.batch;
    options.key_type = cache_type(arguments.key_type);
    options.value_type = cache_type(arguments.value_type);
    options.flash_attention = !arguments.no_flash_attention;
    return options;
}

} // namespace spool::cli
