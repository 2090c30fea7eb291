#include "web/plain_text.h"

#include <cstddef>
#include <cstdint>

namespace spool {

namespace {

struct Character {
    uint32_t code = 0;
    size_t bytes = 1;
};

/// The UTF-8 character at `position`; a byte that starts none stands for itself, with code 0xFFFD.
Character character_at(std::string_view text, size_t position) {
    const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
    const uint32_t lead = byte(position);
    if (lead < 0x80) {
        return {lead, 1};
    }
    const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
    if (bytes == 0 || position + bytes > text.size()) {
        return {0xFFFD, 1};
    }
    uint32_t code = lead & (0x7FU >> bytes);
    for (size_t i = 1; i < bytes; ++i) {
        if ((byte(position + i) & 0xC0U) != 0x80) {
            return {0xFFFD, 1};
        }
        code = (code << 6U) | (byte(position + i) & 0x3FU);
    }
    return {code, bytes};
}

bool is_space(uint32_t code) { return code == ' ' || (code >= '\t' && code <= '\r') || code == 0xA0; }

bool is_hidden(uint32_t code) {
    const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
    const bool invisible = code == 0xAD || code == 0x200B || code == 0x2060 || code == 0xFEFF;
    const bool direction = code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                           (code >= 0x2066 && code <= 0x2069);
    const bool tag = code >= 0xE0000 && code <= 0xE007F;
    return control || invisible || direction || tag;
}

} // namespace

std::string plain_line(std::string_view text) {
    std::string line;
    line.reserve(text.size());
    bool space = false;
    for (size_t i = 0; i < text.size();) {
        const Character character = character_at(text, i);
        if (is_space(character.code)) {
            space = true;
        } else if (!is_hidden(character.code)) {
            if (space && !line.empty()) {
                line += ' ';
            }
            space = false;
            line += text.substr(i, character.bytes);
        }
        i += character.bytes;
    }
    return line;
}

std::string without_controls(std::string_view text) {
    std::string kept;
    kept.reserve(text.size());
    for (size_t i = 0; i < text.size();) {
        const Character character = character_at(text, i);
        if (is_space(character.code) ? character.code != '\r' : !is_hidden(character.code)) {
            kept += text.substr(i, character.bytes);
        }
        i += character.bytes;
    }
    return kept;
}

} // namespace spool
