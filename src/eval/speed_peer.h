// llama.cpp on its own, built from the same source: what spool's speed is compared with.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "llm/model.h"

struct llama_adapter_lora;
struct llama_context;

namespace spool {

/// A plain libllama context with a fixed number of cells filled, decoding greedily, nothing of spool in
/// between.
class LlamaPeer {
  public:
    /// `cells`: filled on average while decode() runs. `adapter`: a LoRA file to apply, as spool does; empty:
    /// none.
    LlamaPeer(const Model& model, size_t cells, int threads, const std::string& adapter = "");

    /// Decodes `count` tokens one at a time, the cache going from cells - count/2 to cells + count/2 and
    /// back. Returns seconds.
    double decode(size_t count);
    /// Decodes one batch of `count` tokens on top of the filled cells and drops it. Returns seconds.
    double prefill(size_t count);

  private:
    struct Deleter {
        void operator()(llama_context* context) const;
        void operator()(llama_adapter_lora* adapter) const;
    };
    void fill(size_t cells);

    size_t cells_;
    size_t filled_ = 0;
    int32_t vocab_size_;
    std::unique_ptr<llama_adapter_lora, Deleter> adapter_;
    std::unique_ptr<llama_context, Deleter> context_;
};

} // namespace spool
