// A BERT encoder (all-MiniLM-L6-v2, BGE and their kind) to a GGUF with llama.cpp's names and keys.
#pragma once

#include <filesystem>

#include "convert/bert_config.h"
#include "convert/model.h"

namespace spool {

/// `config` is the config.json of `folder`, whose is_bert() holds. Matrices become F16 unless `options` name
/// a type; the tables of positions and segments, norms and biases stay F32. The head that pre-training left
/// (pooler.dense, cls.*) is left out. Two keys beside llama.cpp's, which ignores them, say what
/// sentence-transformers keeps elsewhere: spool.embedder.max_tokens and, if there is one,
/// spool.embedder.query_prefix. Throws as hugging_face_to_gguf().
ModelReport bert_to_gguf(const std::filesystem::path& folder, const JsonFields& config,
                         const std::filesystem::path& destination, const ModelConversionOptions& options);

} // namespace spool
