// Which tokens a Hugging Face tokenizer gives a meaning (begin, end, padding, ...), which of them it adds by
// itself, and its chat template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json_file.h"
#include "formats/gguf.h"

namespace spool {

struct SpecialToken {
    std::optional<std::string> text; ///< as tokenizer_config.json names it
    std::optional<uint32_t> id;
};
/// By role: "bos", "eos", "unk", "sep", "pad", "cls", "mask"; all are there.
using SpecialTokens = std::map<std::string, SpecialToken, std::less<>>;

/// `tokenizer` is tokenizer.json. An id comes from tokenizer_config.json's token text, else from
/// config.json's field, else from generation_config.json's. Throws Error{bad_file} for an id of `vocab` or
/// more.
SpecialTokens find_special_tokens(const std::filesystem::path& folder, const JsonFields& tokenizer,
                                  uint32_t vocab);

/// The keys tokenizer.ggml.*_token_id of the roles that have an id.
std::vector<GgufPair> special_token_ids(const SpecialTokens& tokens);

/// The keys tokenizer.ggml.*_token_id, tokenizer.ggml.add_*_token and tokenizer.chat_template[.NAME] of
/// a model that generates text. Throws as find_special_tokens(), and Error{unsupported} for a post-processor
/// that llama.cpp cannot follow.
std::vector<GgufPair> special_tokens(const std::filesystem::path& folder, const JsonFields& tokenizer,
                                     uint32_t vocab);

} // namespace spool
