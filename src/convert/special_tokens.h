// Which tokens a Hugging Face tokenizer gives a meaning (begin, end, padding, ...), which of them it adds by
// itself, and its chat template.
#pragma once

#include <filesystem>
#include <vector>

#include "core/json_file.h"
#include "formats/gguf.h"

namespace spool {

/// The keys tokenizer.ggml.*_token_id, tokenizer.ggml.add_*_token and tokenizer.chat_template[.NAME].
/// `tokenizer` is tokenizer.json. An id comes from tokenizer_config.json's token text, else from
/// config.json's field, else from generation_config.json's. Throws Error{bad_file} for an id of `vocab` or
/// more, Error{unsupported} for a post-processor that llama.cpp cannot follow.
std::vector<GgufPair> special_tokens(const std::filesystem::path& folder, const JsonFields& tokenizer,
                                     uint32_t vocab);

} // namespace spool
