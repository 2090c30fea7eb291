#include "corpus/split.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>

#include "core/error.h"
#include "core/hash.h"

namespace spool {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// ASCII lower case, runs of white space as one space, none at the ends.
std::string normalised(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (const char c : text) {
        if (!is_space(c)) {
            result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        } else if (!result.empty() && result.back() != ' ') {
            result += ' ';
        }
    }
    if (result.ends_with(' ')) {
        result.pop_back();
    }
    return result;
}

} // namespace

double split_position(std::string_view text) {
    const std::string canonical = normalised(text);
    const std::string hash = sha256(std::as_bytes(std::span(canonical)));
    uint64_t bits = 0;
    std::from_chars(hash.data(), hash.data() + 16, bits, 16);
    return static_cast<double>(bits >> 11U) * 0x1.0p-53;
}

const std::string& split_key(const std::vector<Message>& messages) {
    const auto user = std::ranges::find(messages, "user", &Message::role);
    if (user == messages.end()) {
        fail(ErrorCode::internal, "a trace without a user's message");
    }
    return user->content;
}

} // namespace spool
