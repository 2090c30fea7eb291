// Models to GGUF files that llama.cpp loads: a Hugging Face or MLX folder, or another GGUF in another type.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include <ggml.h>

namespace spool {

struct ModelConversionOptions {
    /// F32, F16, BF16, Q8_0, or (folders only) Q4_0, Q4_1, Q5_0, Q5_1, for matrices; vectors stay F32.
    /// Nothing: the folder's own type, Q4_1 for an MLX 4-bit folder, F16 for BERT.
    std::optional<ggml_type> type = {};
    /// Copy the tokenizer from this GGUF instead of reading the folder's tokenizer.json.
    std::optional<std::filesystem::path> tokenizer_from = {};
    /// general.name; empty: the folder's name.
    std::string name = {};
};

/// What a conversion could not do exactly.
struct ModelReport {
    size_t tensors = 0;
    size_t mlx_exact = 0;   ///< matrices moved from MLX 4-bit to Q4_1 without loss
    size_t mlx_inexact = 0; ///< MLX matrices with scales that f16 cannot hold, stored as Q8_0 or F16
    size_t unaligned = 0;   ///< matrices whose rows do not divide into the type's blocks, stored as F16
};

/// LlamaForCausalLM (SmolLM2 too), Qwen2ForCausalLM and BertModel (bert.h). Tensors are converted one block
/// of rows at a time: memory does not grow with the model. Throws Error{not_found|bad_file|unsupported};
/// every tensor of the folder must have a place.
ModelReport hugging_face_to_gguf(const std::filesystem::path& folder,
                                 const std::filesystem::path& destination,
                                 const ModelConversionOptions& options);

/// Every tensor of at least two dimensions in `type` (F32, F16, BF16 or Q8_0), one-dimensional ones F32,
/// integers as they are; all keys are copied but general.file_type. Throws Error{unsupported} for a file that
/// is one part of a split model.
ModelReport gguf_to_gguf(const std::filesystem::path& source, const std::filesystem::path& destination,
                         ggml_type type);

} // namespace spool
