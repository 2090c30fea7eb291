// A model's tokenizer as GGUF keys (tokenizer.ggml.*, tokenizer.chat_template): read from a Hugging Face
// folder, or copied from a GGUF of the same family.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "formats/gguf.h"

namespace spool {

/// From tokenizer.json (byte-level BPE), tokenizer_config.json, chat_template.jinja, config.json and
/// generation_config.json, with the keys and values that llama.cpp's own converter writes. Ids without a
/// token up to `vocab` become unused "[PADn]" tokens. Throws Error{not_found|bad_file}, and
/// Error{unsupported} with the advice to use a GGUF instead for other kinds of tokenizer.
std::vector<GgufPair> tokenizer_from_folder(const std::filesystem::path& folder,
                                            const std::string& architecture, uint32_t vocab);

/// Every tokenizer.* key of `model`. Throws Error{incompatible} unless it has `vocab` tokens.
std::vector<GgufPair> tokenizer_from_gguf(const GgufFile& model, uint32_t vocab);

} // namespace spool
