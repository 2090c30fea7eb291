#include "llm/token_rows.h"

#include <cstring>

#include "core/error.h"

namespace spool {

TokenRows::TokenRows(const GgufFile& model) : file_(model.path()) {
    const GgufTensor* tensor = model.find_tensor("token_embd.weight");
    if (tensor == nullptr || tensor->ne.size() != 2) {
        fail(ErrorCode::unsupported,
             "{}: has no two-dimensional token_embd.weight, so its token rows cannot be read; a soft prompt "
             "needs "
             "them (merge a split model into one file)",
             model.path().string());
    }
    type_ = tensor->type;
    width_ = tensor->ne[0];
    rows_ = tensor->ne[1];
    const auto* traits = ggml_get_type_traits(type_);
    if (type_ != GGML_TYPE_F32 && traits->to_float == nullptr) {
        fail(ErrorCode::unsupported, "{}: token_embd.weight has type {}, which ggml cannot dequantise",
             model.path().string(), ggml_type_name(type_));
    }
    offset_ = static_cast<size_t>(tensor->data.data() - model.mapping().data());
}

void TokenRows::read(std::span<const Token> tokens, float* out) const {
    const size_t row_bytes = ggml_row_size(type_, width_);
    const std::byte* table = file_.bytes().data() + offset_;
    const auto* traits = ggml_get_type_traits(type_);
    for (const Token token : tokens) {
        if (token < 0 || token >= rows_) {
            fail(ErrorCode::invalid_argument, "token id {} is outside the vocabulary of {} tokens", token,
                 rows_);
        }
        const std::byte* row = table + static_cast<size_t>(token) * row_bytes;
        if (type_ == GGML_TYPE_F32) {
            std::memcpy(out, row, row_bytes);
        } else {
            traits->to_float(row, out, width_);
        }
        out += width_;
    }
}

} // namespace spool
