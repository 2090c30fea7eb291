#include "eval/speed_peer.h"

#include <algorithm>
#include <vector>

#include <llama.h>

#include "core/error.h"
#include "memory/schedule.h"

namespace spool {

void LlamaPeer::Deleter::operator()(llama_context* context) const { llama_free(context); }

void LlamaPeer::Deleter::operator()(llama_adapter_lora* adapter) const { llama_adapter_lora_free(adapter); }

LlamaPeer::LlamaPeer(const Model& model, size_t cells, int threads, const std::string& adapter)
    : cells_(cells), vocab_size_(model.facts().vocab_size) {
    auto params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(cells + spare_cells);
    params.n_batch = params.n_ubatch = 512;
    params.n_outputs_max = 1;
    params.n_threads = params.n_threads_batch = threads;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.no_perf = true;
    context_.reset(llama_init_from_model(model.handle(), params));
    if (!context_) {
        fail(ErrorCode::out_of_memory, "the peer's context of {} cells cannot be made", cells);
    }
    if (!adapter.empty()) {
        adapter_.reset(llama_adapter_lora_init(model.handle(), adapter.c_str()));
        llama_adapter_lora* pointer = adapter_.get();
        float scale = 1.0F;
        if (pointer == nullptr || llama_set_adapters_lora(context_.get(), &pointer, 1, &scale) != 0) {
            fail(ErrorCode::incompatible, "{}: the peer cannot use this adapter", adapter);
        }
    }
}

void LlamaPeer::fill(size_t cells) {
    if (filled_ > cells) {
        llama_memory_seq_rm(llama_get_memory(context_.get()), 0, static_cast<llama_pos>(cells), -1);
        filled_ = cells;
    }
    while (filled_ < cells) {
        std::vector<Token> tokens(std::min<size_t>(llama_n_batch(context_.get()), cells - filled_));
        for (size_t i = 0; i < tokens.size(); ++i) {
            tokens[i] = static_cast<Token>((filled_ + i) * 37 % static_cast<size_t>(vocab_size_));
        }
        if (llama_decode(context_.get(),
                         llama_batch_get_one(tokens.data(), static_cast<int32_t>(tokens.size()))) != 0) {
            fail(ErrorCode::internal, "the peer could not fill its cells");
        }
        filled_ += tokens.size();
    }
}

double LlamaPeer::decode(size_t count) {
    fill(cells_ - count / 2 - 1);
    Token token = 100;
    llama_decode(context_.get(), llama_batch_get_one(&token, 1)); // so that the first sample has logits
    ++filled_;
    const Stopwatch watch;
    for (size_t i = 0; i < count; ++i) {
        const float* logits = llama_get_logits_ith(context_.get(), -1);
        token = static_cast<Token>(std::max_element(logits, logits + vocab_size_) - logits);
        if (llama_decode(context_.get(), llama_batch_get_one(&token, 1)) != 0) {
            fail(ErrorCode::internal, "the peer could not decode");
        }
        ++filled_;
    }
    llama_synchronize(context_.get());
    return watch.seconds();
}

double LlamaPeer::prefill(size_t count) {
    fill(cells_);
    const Stopwatch watch;
    fill(cells_ + count);
    llama_synchronize(context_.get());
    const double seconds = watch.seconds();
    fill(cells_);
    return seconds;
}

void LlamaPeer::make_room(size_t count, size_t kept) {
    if (filled_ + count <= llama_n_ctx(context_.get())) {
        return;
    }
    const size_t dropped = (filled_ - kept) / 2;
    const auto position = [](size_t cell) { return static_cast<llama_pos>(cell); };
    llama_memory_t memory = llama_get_memory(context_.get());
    llama_memory_seq_rm(memory, 0, position(kept), position(kept + dropped));
    llama_memory_seq_add(memory, 0, position(kept + dropped), -1, -position(dropped));
    filled_ -= dropped;
}

double LlamaPeer::turn(size_t text, size_t reply, size_t kept) {
    const Stopwatch watch;
    const size_t most = (llama_n_ctx(context_.get()) - kept) / 4; // what a shift is sure to make room for
    for (size_t read = 0; read < text;) {
        const size_t piece = std::min(text - read, most);
        make_room(piece, kept);
        fill(filled_ + piece);
        read += piece;
    }
    for (size_t i = 0; i < reply; ++i) {
        const float* logits = llama_get_logits_ith(context_.get(), -1);
        auto token = static_cast<Token>(std::max_element(logits, logits + vocab_size_) - logits);
        make_room(1, kept);
        if (llama_decode(context_.get(), llama_batch_get_one(&token, 1)) != 0) {
            fail(ErrorCode::internal, "the peer could not decode");
        }
        ++filled_;
    }
    llama_synchronize(context_.get());
    return watch.seconds();
}

} // namespace spool
