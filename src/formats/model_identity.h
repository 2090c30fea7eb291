// Which model a GGUF file holds, as pooler.gguf and bundle.json state it.
#pragma once

#include <string>
#include <vector>

#include "formats/gguf.h"

namespace spool {

/// Which model a pooler or adapter was trained for. Empty strings: not known.
struct BaseIdentity {
    std::string architecture; ///< general.architecture, e.g. "llama"
    std::string name;         ///< general.name
    std::string vocab_sha256; ///< as vocab_sha256() below computes it

    bool operator==(const BaseIdentity&) const = default;
};

/// SHA-256 over every token's bytes, each preceded by its length as a little-endian u32, in id order.
std::string vocab_sha256(const std::vector<std::string>& tokens);

/// vocab_sha256 of the file's tokenizer.ggml.tokens. Throws Error{bad_file} when it has none.
std::string vocab_sha256(const GgufFile& model);

/// Architecture, name and vocabulary of a model GGUF.
BaseIdentity base_identity(const GgufFile& model);

} // namespace spool
