// BERT's tokenizer as GGUF keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "formats/gguf.h"

namespace spool {

/// From the folder's tokenizer.json (WordPiece) and tokenizer_config.json, with the keys and values that
/// llama.cpp's own converter writes. libllama splits words its own way: a token that begins a word carries
/// "▁" before it, one that continues a word loses its "##", control tokens stay as they are. Ids without a
/// token up to `vocab` become unused tokens. Throws Error{not_found|bad_file}, and Error{unsupported} for
/// what libllama would split otherwise, with the advice to use a GGUF instead.
std::vector<GgufPair> wordpiece_from_folder(const std::filesystem::path& folder, uint32_t vocab);

} // namespace spool
