#include "llm/model.h"

#include <algorithm>
#include <array>
#include <span>

#include <llama.h>

#include "core/error.h"
#include "core/hash.h"
#include "formats/model_identity.h"
#include "llm/backend.h"

namespace spool {

namespace {

/// K plus V elements of one cell over all layers, from the file's metadata.
uint64_t kv_elements_per_cell(const GgufFile& file, const ModelFacts& facts, const llama_model* model) {
    const std::string prefix = facts.architecture + ".attention.";
    const auto heads = static_cast<uint64_t>(std::max(1, llama_model_n_head(model)));
    const uint64_t key =
        file.optional_u32(prefix + "key_length").value_or(static_cast<uint64_t>(facts.width) / heads);
    const uint64_t value =
        file.optional_u32(prefix + "value_length").value_or(static_cast<uint64_t>(facts.width) / heads);
    return static_cast<uint64_t>(facts.layers) * static_cast<uint64_t>(llama_model_n_head_kv(model)) *
           (key + value);
}

bool scales_embeddings(const GgufFile& file, const std::string& architecture) {
    constexpr std::array scaled = {"gemma",  "gemma2",  "gemma3",   "gemma3n",
                                   "gemma4", "minicpm", "minicpm3", "grok"};
    for (const char* name : scaled) {
        if (architecture == name) {
            return true;
        }
    }
    return file.find(architecture + ".embedding_scale") != nullptr;
}

} // namespace

void Model::Deleter::operator()(llama_model* model) const { llama_model_free(model); }

Model::Model(const ModelOptions& options) : path_(options.path) {
    init_backend();
    const GgufFile file(options.path);
    facts_.architecture = file.string("general.architecture");
    facts_.name = file.optional_string("general.name").value_or("");
    facts_.vocab_sha256 = spool::vocab_sha256(file);
    facts_.scales_embeddings = scales_embeddings(file, facts_.architecture);
    if (facts_.architecture.starts_with("spool-")) {
        fail(ErrorCode::bad_file,
             "{}: is a {} file, not a language model; pass the model with -m and the bundle's "
             "folder with --bundle",
             path_.string(), facts_.architecture);
    }
    try {
        rows_.emplace(file);
    } catch (const Error& error) {
        rows_problem_ = error.what();
    }

    auto params = llama_model_default_params();
    params.n_gpu_layers = options.gpu_layers;
    params.load_mode = options.use_mmap ? LLAMA_LOAD_MODE_AUTO : LLAMA_LOAD_MODE_NONE;
    struct Progress {
        const std::function<bool(float)>* callback = nullptr;
        bool cancelled = false;
    } progress{&options.on_progress};
    if (options.on_progress) {
        params.progress_callback_user_data = &progress;
        params.progress_callback = [](float done, void* data) {
            auto* state = static_cast<Progress*>(data);
            state->cancelled = !(*state->callback)(done);
            return !state->cancelled;
        };
    }
    clear_backend_message();
    handle_.reset(llama_model_load_from_file(path_.c_str(), params));
    if (!handle_) {
        if (progress.cancelled) {
            fail(ErrorCode::interrupted, "{}: loading was cancelled", path_.string());
        }
        fail(ErrorCode::bad_file, "{}: libllama cannot load this model: {}", path_.string(),
             last_backend_message());
    }

    std::array<char, 256> text{};
    llama_model_desc(handle_.get(), text.data(), text.size());
    facts_.description = text.data();
    facts_.width = llama_model_n_embd_inp(handle_.get());
    facts_.layers = llama_model_n_layer(handle_.get());
    facts_.vocab_size = llama_vocab_n_tokens(llama_model_get_vocab(handle_.get()));
    facts_.trained_context = llama_model_n_ctx_train(handle_.get());
    facts_.sliding_window = std::max(0, llama_model_n_swa(handle_.get()));
    facts_.bytes = llama_model_size(handle_.get());
    facts_.kv_elements_per_cell = kv_elements_per_cell(file, facts_, handle_.get());
}

Model::~Model() = default;

std::string Model::fingerprint() const {
    constexpr size_t sample = size_t{1} << 16U;
    const GgufFile file(path_);
    const auto bytes = file.mapping();
    size_t data_start = bytes.size();
    for (const auto& tensor : file.tensors()) {
        data_start = std::min(data_start, static_cast<size_t>(tensor.data.data() - bytes.data()));
    }
    const auto data = bytes.subspan(data_start);
    const auto size = std::to_string(bytes.size());
    const std::string text = size + sha256(bytes.first(data_start)) +
                             sha256(data.first(std::min(sample, data.size()))) +
                             sha256(data.last(std::min(sample, data.size())));
    return sha256(std::as_bytes(std::span(text)));
}

const TokenRows& Model::token_rows() const {
    if (facts_.scales_embeddings) {
        fail(ErrorCode::unsupported,
             "{}: {} models scale their token embeddings, so a soft prompt made of unscaled rows does not "
             "fit them; "
             "use --strategy window",
             path_.string(), facts_.architecture);
    }
    if (!rows_) {
        fail(ErrorCode::unsupported, "{}", rows_problem_);
    }
    return *rows_;
}

std::optional<std::string> Model::cannot_evict(uint32_t window) const {
    const llama_model* model = handle_.get();
    if (llama_model_is_recurrent(model) || llama_model_is_hybrid(model)) {
        return "it is a recurrent model: its state cannot forget single tokens";
    }
    if (llama_model_is_diffusion(model)) {
        return "it is a diffusion model: it does not generate left to right";
    }
    if (llama_model_has_encoder(model)) {
        return "it has an encoder: its input cannot be evicted from a cache";
    }
    const auto rope = llama_model_rope_type(model);
    if (rope == LLAMA_ROPE_TYPE_MROPE || rope == LLAMA_ROPE_TYPE_IMROPE || rope == LLAMA_ROPE_TYPE_VISION) {
        return "it uses multi-dimensional positions (M-RoPE), which cannot be re-based";
    }
    if (facts_.sliding_window > 0 && window > static_cast<uint32_t>(facts_.sliding_window)) {
        return fmt::format(
            "its own sliding window is {} tokens, smaller than the window of {} asked for; use "
            "--window {} or less",
            facts_.sliding_window, window, facts_.sliding_window);
    }
    return std::nullopt;
}

} // namespace spool
