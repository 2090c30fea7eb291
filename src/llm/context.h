// RAII over a libllama context: one KV cache of a fixed number of cells, shared by several sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ggml.h>

#include "llm/batch.h"
#include "llm/model.h"

struct llama_context;
struct llama_adapter_lora;

namespace spool {

struct ContextOptions {
    /// Cells wanted; libllama rounds up to a multiple of 256.
    uint32_t cells = 4096;
    uint32_t sequences = 1;
    /// The largest decode, in rows; larger batches are split.
    uint32_t batch = 512;
    /// Rows that may ask for logits in one decode; 0: as many as `batch`.
    uint32_t outputs = 0;
    int threads = 0; ///< 0: physical cores
    ggml_type key_type = GGML_TYPE_F16;
    ggml_type value_type = GGML_TYPE_F16;
    bool flash_attention = true;
};

/// Bytes reserved when the context was made; they never grow.
struct ContextMemory {
    size_t model = 0;
    size_t kv = 0;
    size_t compute = 0; ///< graph scratch and output buffers
};

class Context {
  public:
    /// `model` must outlive the context. Throws Error{out_of_memory|invalid_argument|unsupported}.
    Context(const Model& model, const ContextOptions& options);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    const Model& model() const { return *model_; }
    /// Cells there really are (rounded up).
    uint32_t cells() const;
    const ContextMemory& memory() const { return memory_; }
    int threads() const { return threads_; }

    /// Applies a LoRA adapter file for the life of the context.
    /// Throws Error{bad_file|incompatible} if libllama refuses it.
    void apply_adapter(const std::string& path, float scale = 1.0F);

    /// Leaves the adapter out, or uses it again. Without an adapter it does nothing.
    void enable_adapter(bool enabled);

    /// Feeds all rows, in steps of at most `batch` rows. After it, logits(row) is valid for the rows of the
    /// last step that asked for output. Throws Error{out_of_memory} when no cells are left.
    void decode(Batch& batch);
    /// [n_vocab], valid until the next decode. `row`: index in the batch of the last decode.
    std::span<const float> logits(size_t row) const;

    /// Removes positions [first, last) of `sequence`; last < 0: to the end.
    void remove(SequenceId sequence, Position first, Position last);
    /// Moves everything of `sequence` from position `first` on by `delta`, its keys turned to their new
    /// positions at the next decode. Throws Error{unsupported} if the model cannot.
    void shift(SequenceId sequence, Position first, Position delta);
    /// Lets `to` share the cells of `from` at positions [first, last).
    void share(SequenceId from, SequenceId to, Position first, Position last);
    /// -1 when the sequence is empty.
    Position last_position(SequenceId sequence) const;
    Position first_position(SequenceId sequence) const;

    std::vector<std::byte> save_sequence(SequenceId sequence) const;
    /// Replaces `sequence`. Throws Error{bad_file} if libllama refuses the bytes.
    void load_sequence(SequenceId sequence, std::span<const std::byte> bytes);

    llama_context* handle() const { return handle_.get(); }

  private:
    struct Deleter {
        void operator()(llama_context* context) const;
        void operator()(llama_adapter_lora* adapter) const;
    };
    const Model* model_;
    uint32_t batch_limit_;
    int threads_;
    ContextMemory memory_;
    size_t last_step_first_ = 0;
    float adapter_scale_ = 1.0F;
    std::unique_ptr<llama_adapter_lora, Deleter> adapter_;
    std::unique_ptr<llama_context, Deleter> handle_;
};

} // namespace spool
