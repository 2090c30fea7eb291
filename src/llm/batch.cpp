#include "llm/batch.h"

#include <llama.h>

#include "core/error.h"

namespace spool {

void Batch::clear() {
    tokens_.clear();
    embeddings_.clear();
    positions_.clear();
    sequence_counts_.clear();
    sequences_.clear();
    outputs_.clear();
}

void Batch::add(Token token, Position position, SequenceId sequence, bool output) {
    tokens_.push_back(token);
    positions_.push_back(position);
    sequence_counts_.push_back(1);
    sequences_.push_back(sequence);
    outputs_.push_back(output ? 1 : 0);
}

void Batch::add(std::span<const float> embedding, Position position, SequenceId sequence, bool output) {
    if (embedding.size() != width_) {
        fail(ErrorCode::internal, "an embedding of {} floats in a batch of width {}", embedding.size(),
             width_);
    }
    embeddings_.insert(embeddings_.end(), embedding.begin(), embedding.end());
    positions_.push_back(position);
    sequence_counts_.push_back(1);
    sequences_.push_back(sequence);
    outputs_.push_back(output ? 1 : 0);
}

llama_batch Batch::view(size_t first, size_t count) {
    sequence_pointers_.resize(sequences_.size());
    for (size_t i = 0; i < sequences_.size(); ++i) {
        sequence_pointers_[i] = &sequences_[i];
    }
    llama_batch batch{};
    batch.n_tokens = static_cast<int32_t>(count);
    batch.token = width_ == 0 ? tokens_.data() + first : nullptr;
    batch.embd = width_ == 0 ? nullptr : embeddings_.data() + first * width_;
    batch.pos = positions_.data() + first;
    batch.n_seq_id = sequence_counts_.data() + first;
    batch.seq_id = sequence_pointers_.data() + first;
    batch.logits = outputs_.data() + first;
    return batch;
}

} // namespace spool
