#include "llm/context.h"

#include <algorithm>

#include <llama.h>

#include "../src/llama-ext.h"
#include "core/error.h"
#include "llm/backend.h"

namespace spool {

void Context::Deleter::operator()(llama_context* context) const { llama_free(context); }
void Context::Deleter::operator()(llama_adapter_lora* adapter) const { llama_adapter_lora_free(adapter); }

Context::Context(const Model& model, const ContextOptions& options)
    : model_(&model), batch_limit_(std::min(options.batch, options.cells)),
      threads_(options.threads > 0 ? options.threads : physical_cores()) {
    auto params = llama_context_default_params();
    params.n_ctx = options.cells;
    params.n_batch = batch_limit_;
    params.n_ubatch = batch_limit_;
    params.n_seq_max = options.sequences;
    params.n_outputs_max = options.outputs;
    params.n_threads = threads_;
    params.n_threads_batch = threads_;
    params.type_k = options.key_type;
    params.type_v = options.value_type;
    // The flash attention kernel rounds keys and values of F32 to F16.
    const bool exact = options.key_type == GGML_TYPE_F32 || options.value_type == GGML_TYPE_F32;
    params.flash_attn_type =
        options.flash_attention && !exact ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.kv_unified = true; // a partial seq_cp between sequences aborts otherwise
    params.swa_full = true;   // sharing cells needs every position of every layer
    params.no_perf = true;
    clear_backend_message();
    handle_.reset(llama_init_from_model(model.handle(), params));
    if (!handle_) {
        fail(ErrorCode::out_of_memory,
             "{}: libllama cannot make a context of {} cells: {}. Try a smaller --window, --chunk or "
             "--ctx-size, or "
             "another --cache-type-k/-v",
             model.path().string(), options.cells, last_backend_message());
    }
    if (llama_get_memory(handle_.get()) == nullptr) {
        fail(ErrorCode::unsupported,
             "{}: is a text encoder ({}), which generates nothing; give it with --embedder, and a language "
             "model with -m",
             model.path().string(), model.facts().architecture);
    }
    for (const auto& [type, data] : llama_get_memory_breakdown(handle_.get())) {
        memory_.model += data.model;
        memory_.kv += data.context;
        memory_.compute += data.compute;
    }
}

Context::~Context() = default;

uint32_t Context::cells() const { return llama_n_ctx(handle_.get()); }

void Context::apply_adapter(const std::string& path, float scale) {
    clear_backend_message();
    std::unique_ptr<llama_adapter_lora, Deleter> adapter(
        llama_adapter_lora_init(model_->handle(), path.c_str()));
    if (!adapter) {
        fail(ErrorCode::incompatible, "{}: libllama cannot use this adapter with {}: {}", path,
             model_->path().string(), last_backend_message());
    }
    adapter_ = std::move(adapter);
    adapter_scale_ = scale;
    enable_adapter(true);
}

void Context::enable_adapter(bool enabled) {
    llama_adapter_lora* adapter = adapter_.get();
    const size_t count = enabled && adapter != nullptr ? 1 : 0;
    if (llama_set_adapters_lora(handle_.get(), &adapter, count, &adapter_scale_) != 0) {
        fail(ErrorCode::incompatible, "the adapter cannot be applied to {}", model_->path().string());
    }
}

void Context::decode(Batch& batch) {
    for (size_t first = 0; first < batch.size(); first += batch_limit_) {
        const size_t count = std::min<size_t>(batch_limit_, batch.size() - first);
        clear_backend_message();
        const int status = llama_decode(handle_.get(), batch.view(first, count));
        if (status == 1) {
            fail(ErrorCode::out_of_memory, "the KV cache of {} cells has no room for {} more tokens", cells(),
                 count);
        }
        if (status == 2) {
            fail(ErrorCode::interrupted, "decoding was stopped");
        }
        if (status != 0) {
            fail(ErrorCode::internal, "libllama failed to decode {} rows (status {}): {}", count, status,
                 last_backend_message());
        }
        last_step_first_ = first;
    }
}

std::span<const float> Context::logits(size_t row) const {
    const float* values =
        row < last_step_first_
            ? nullptr
            : llama_get_logits_ith(handle_.get(), static_cast<int32_t>(row - last_step_first_));
    if (values == nullptr) {
        fail(ErrorCode::internal, "row {} of the last decode has no logits", row);
    }
    return {values, static_cast<size_t>(model_->facts().vocab_size)};
}

void Context::remove(SequenceId sequence, Position first, Position last) {
    if (!llama_memory_seq_rm(llama_get_memory(handle_.get()), sequence, first, last)) {
        fail(ErrorCode::unsupported, "{}: this model's cache cannot drop positions {} to {}",
             model_->path().string(), first, last);
    }
}

void Context::shift(SequenceId sequence, Position first, Position delta) {
    const llama_memory_t memory = llama_get_memory(handle_.get());
    if (!llama_memory_can_shift(memory)) {
        fail(ErrorCode::unsupported, "{}: this model's cache cannot move to other positions",
             model_->path().string());
    }
    llama_memory_seq_add(memory, sequence, first, -1, delta);
}

void Context::share(SequenceId from, SequenceId to, Position first, Position last) {
    llama_memory_seq_cp(llama_get_memory(handle_.get()), from, to, first, last);
}

Position Context::last_position(SequenceId sequence) const {
    return llama_memory_seq_pos_max(llama_get_memory(handle_.get()), sequence);
}

Position Context::first_position(SequenceId sequence) const {
    return llama_memory_seq_pos_min(llama_get_memory(handle_.get()), sequence);
}

std::vector<std::byte> Context::save_sequence(SequenceId sequence) const {
    std::vector<std::byte> bytes(llama_state_seq_get_size(handle_.get(), sequence));
    const size_t written = llama_state_seq_get_data(handle_.get(), reinterpret_cast<uint8_t*>(bytes.data()),
                                                    bytes.size(), sequence);
    if (written == 0 || written > bytes.size()) {
        fail(ErrorCode::internal, "libllama could not save sequence {}", sequence);
    }
    bytes.resize(written);
    return bytes;
}

void Context::load_sequence(SequenceId sequence, std::span<const std::byte> bytes) {
    remove(sequence, -1, -1);
    clear_backend_message();
    const size_t read = llama_state_seq_set_data(
        handle_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), sequence);
    if (read != bytes.size()) {
        remove(sequence, -1, -1);
        fail(ErrorCode::bad_file, "libllama does not accept the saved state of {} bytes: {}", bytes.size(),
             last_backend_message());
    }
}

} // namespace spool
