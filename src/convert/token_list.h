// The tokens of a tokenizer.json by id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_file.h"

namespace spool {

/// GGUF's numbers.
enum class TokenType : int32_t { normal = 1, control = 3, user_defined = 4, unused = 5 };

struct ListedToken {
    std::string text;
    TokenType type = TokenType::normal;
};

/// [vocab]: what the model's "vocab" and the "added_tokens" name; ids without a token up to `vocab` are
/// unused
/// "[PADn]" tokens. Added tokens are control tokens if they are marked as special or look it. Throws
/// Error{bad_file} for an id beyond `vocab`.
std::vector<ListedToken> read_tokens(const JsonFields& tokenizer, uint32_t vocab);

/// `text` with every `from` replaced by `to`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

} // namespace spool
