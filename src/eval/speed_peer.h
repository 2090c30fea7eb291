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
    /// The cache has so many more cells than are filled on average.
    static constexpr size_t spare_cells = 512;

    /// `cells`: filled on average while decode() runs. `adapter`: a LoRA file to apply, as spool does; empty:
    /// none.
    LlamaPeer(const Model& model, size_t cells, int threads, const std::string& adapter = "");

    /// Decodes `count` tokens one at a time, the cache going from cells - count/2 to cells + count/2 and
    /// back. Returns seconds.
    double decode(size_t count);
    /// One turn of a chat as llama.cpp's own programs hold it: reads `text` tokens, decodes `reply` tokens,
    /// and whenever the cache is full keeps `kept` first tokens and drops half of the rest (context shift).
    /// Not to be mixed with the calls above. Returns seconds.
    double turn(size_t text, size_t reply, size_t kept);
    /// Decodes one batch of `count` tokens on top of the filled cells and drops it. Returns seconds.
    double prefill(size_t count);

  private:
    struct Deleter {
        void operator()(llama_context* context) const;
        void operator()(llama_adapter_lora* adapter) const;
    };
    void fill(size_t cells);
    void make_room(size_t count, size_t kept);

    size_t cells_;
    size_t filled_ = 0;
    int32_t vocab_size_;
    std::unique_ptr<llama_adapter_lora, Deleter> adapter_;
    std::unique_ptr<llama_context, Deleter> context_;
};

} // namespace spool
