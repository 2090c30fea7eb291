// What one decode call feeds: rows of token ids or of embeddings, each with a position and a sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/token.h"

struct llama_batch;

namespace spool {

using SequenceId = int32_t;

/// All tokens or all embeddings, never both. Reusable: clear() keeps the memory.
class Batch {
  public:
    Batch() = default;
    /// A batch of embedding rows of `width` floats.
    explicit Batch(int64_t width) : width_(static_cast<size_t>(width)) {}

    void clear();
    /// `output`: compute logits for this row.
    void add(Token token, Position position, SequenceId sequence, bool output);
    void add(std::span<const float> embedding, Position position, SequenceId sequence, bool output);

    size_t size() const { return positions_.size(); }
    /// libllama's view of rows [first, first + count); valid until the batch changes.
    llama_batch view(size_t first, size_t count);

  private:
    size_t width_ = 0;
    std::vector<Token> tokens_;
    std::vector<float> embeddings_;
    std::vector<Position> positions_;
    std::vector<int32_t> sequence_counts_;
    std::vector<SequenceId> sequences_;
    std::vector<SequenceId*> sequence_pointers_;
    std::vector<int8_t> outputs_;
};

} // namespace spool
