// Rows of the model's token embedding, dequantised on demand: the pooler reads these instead of keeping
// vectors. The table itself is never expanded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include <ggml.h>

#include "core/file.h"
#include "core/token.h"
#include "formats/gguf.h"

namespace spool {

class TokenRows {
  public:
    /// Maps `model` again and finds token_embd.weight [n_embd, n_vocab].
    /// Throws Error{unsupported} if the file has no such tensor (a later part of a split model).
    explicit TokenRows(const GgufFile& model);

    int64_t width() const { return width_; }
    int64_t vocab_size() const { return rows_; }
    /// Fills `out` [tokens.size(), width()] float32. Throws Error{invalid_argument} for an id outside the
    /// vocabulary.
    void read(std::span<const Token> tokens, float* out) const;

  private:
    MappedFile file_;
    size_t offset_ = 0;
    ggml_type type_ = GGML_TYPE_F32;
    int64_t width_ = 0;
    int64_t rows_ = 0;
};

} // namespace spool
