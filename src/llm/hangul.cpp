#include "llm/hangul.h"

#include <algorithm>
#include <cstdint>

#include "../src/unicode.h"

namespace spool {

std::string decompose_hangul(const std::string& text) {
    constexpr uint32_t first_syllable = 0xAC00;
    constexpr uint32_t last_syllable = 0xD7A3;
    constexpr uint32_t leading = 0x1100;
    constexpr uint32_t vowel = 0x1161;
    constexpr uint32_t trailing = 0x11A7; // one before the first: 0 stands for none
    constexpr uint32_t vowels = 21;
    constexpr uint32_t trailings = 28;
    // The syllables are three bytes that begin with 0xEA to 0xED.
    const auto maybe = [](char byte) {
        const auto value = static_cast<unsigned char>(byte);
        return value >= 0xEA && value <= 0xED;
    };
    if (std::ranges::none_of(text, maybe)) {
        return text;
    }
    std::string result;
    for (const uint32_t letter : unicode_cpts_from_utf8(text)) {
        if (letter < first_syllable || letter > last_syllable) {
            result += unicode_cpt_to_utf8(letter);
            continue;
        }
        const uint32_t index = letter - first_syllable;
        result += unicode_cpt_to_utf8(leading + index / (vowels * trailings));
        result += unicode_cpt_to_utf8(vowel + index / trailings % vowels);
        if (const uint32_t last = index % trailings; last != 0) {
            result += unicode_cpt_to_utf8(trailing + last);
        }
    }
    return result;
}

} // namespace spool
