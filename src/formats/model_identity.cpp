#include "formats/model_identity.h"

#include <cstdint>

#include "core/hash.h"

namespace spool {

std::string vocab_sha256(const std::vector<std::string>& tokens) {
    std::string bytes;
    for (const auto& token : tokens) {
        const auto length = static_cast<uint32_t>(token.size());
        for (unsigned shift = 0; shift < 32; shift += 8) {
            bytes.push_back(static_cast<char>((length >> shift) & 0xFFU));
        }
        bytes += token;
    }
    return sha256(std::as_bytes(std::span(bytes)));
}

std::string vocab_sha256(const GgufFile& model) {
    return vocab_sha256(model.strings("tokenizer.ggml.tokens"));
}

BaseIdentity base_identity(const GgufFile& model) {
    return {.architecture = model.string("general.architecture"),
            .name = model.optional_string("general.name").value_or(""),
            .vocab_sha256 = vocab_sha256(model)};
}

} // namespace spool
