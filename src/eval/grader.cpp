#include "eval/grader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace spool {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// Where the group that opens at `open` closes; npos if it does not.
size_t closing(std::string_view text, size_t open) {
    int depth = 0;
    for (size_t i = open; i < text.size(); ++i) {
        depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
        if (depth == 0) {
            return i;
        }
    }
    return std::string_view::npos;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    std::string result;
    size_t at = 0;
    for (size_t found = text.find(from); found != std::string::npos; found = text.find(from, at)) {
        result.append(text, at, found - at).append(to);
        at = found + from.size();
    }
    text = result.append(text, at);
}

/// One argument of a LaTeX command at `at`: a group's content, or one character. Moves `at` behind it.
std::string argument(const std::string& text, size_t& at) {
    while (at < text.size() && text[at] == ' ') {
        ++at;
    }
    if (at >= text.size()) {
        return "";
    }
    if (text[at] != '{') {
        return text.substr(at++, 1);
    }
    const size_t end = closing(text, at);
    if (end == std::string::npos) {
        return "";
    }
    const std::string content = text.substr(at + 1, end - at - 1);
    at = end + 1;
    return content;
}

/// \frac{a}{b} as (a)/(b), a plain number's parentheses left out; \text{...} as its content.
std::string expand_commands(std::string text) {
    for (const std::string_view name : {"\\dfrac", "\\tfrac", "\\cfrac"}) {
        replace_all(text, name, "\\frac");
    }
    for (size_t at = text.find("\\frac"); at != std::string::npos; at = text.find("\\frac")) {
        size_t end = at + 5;
        const auto part = [&] {
            const std::string content = argument(text, end);
            const bool plain = std::ranges::all_of(content, [](char c) { return is_digit(c) || c == '.'; });
            return plain ? content : fmt::format("({})", content);
        };
        const std::string above = part();
        const std::string below = part();
        const bool mixed = at > 0 && is_digit(text[at - 1]);
        text.replace(at, end - at, fmt::format("{}{}/{}", mixed ? " " : "", above, below));
    }
    for (const std::string name : {"\\text", "\\textbf", "\\textit", "\\mathrm", "\\mathbf", "\\mbox"}) {
        const std::string opening = name + "{";
        for (size_t at = text.find(opening); at != std::string::npos; at = text.find(opening)) {
            size_t end = at + name.size();
            if (closing(text, end) == std::string::npos) {
                break;
            }
            const std::string content = argument(text, end);
            text.replace(at, end - at, fmt::format(" {} ", content));
        }
    }
    return text;
}

std::string normalise(std::string_view raw) {
    std::string text(raw);
    for (const std::string_view gone :
         {"\\left", "\\right", "\\!", "\\(", "\\)", "\\[", "\\]", "\\$", "$", "^\\circ", "^{\\circ}",
          "\\degree", "\\displaystyle", "\xC2\xB0", "\xE2\x82\xAC", "\xC2\xA3"}) {
        replace_all(text, gone, "");
    }
    for (const std::string_view space : {"\\,", "\\;", "\\:", "\\ ", "\\quad", "~", "\n", "\t"}) {
        replace_all(text, space, " ");
    }
    replace_all(text, "\xE2\x88\x92", "-");
    replace_all(text, "{,}", ",");
    replace_all(text, "\\%", "%");
    text = expand_commands(std::move(text));
    std::string result;
    for (const char c : text) { // single spaces
        if (c != ' ' || (!result.empty() && result.back() != ' ')) {
            result += c;
        }
    }
    while (!result.empty() && (result.back() == ' ' || result.back() == '.')) {
        result.pop_back();
    }
    return result;
}

struct Fraction {
    int64_t above = 0;
    int64_t below = 1;

    bool operator==(const Fraction&) const = default;
};

std::optional<Fraction> reduced(int64_t above, int64_t below) {
    if (below == 0) {
        return std::nullopt;
    }
    const int64_t divisor = std::gcd(above, below);
    const int64_t sign = below < 0 ? -1 : 1;
    return Fraction{sign * above / divisor, sign * below / divisor};
}

/// A number and the word behind it.
struct Quantity {
    Fraction value;
    std::string unit;
};

/// Reads numbers out of normalised text.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    /// nullopt if a number is too large to compare exactly.
    std::optional<std::vector<Quantity>> quantities() {
        std::vector<Quantity> all;
        while (at_ < text_.size()) {
            const bool in_word = at_ > 0 && (is_letter(text_[at_ - 1]) || text_[at_ - 1] == '_');
            const bool leading_point = text_[at_] == '.' && is_digit(peek(1));
            if (!in_word && (is_digit(text_[at_]) || leading_point)) {
                const bool negative = at_ > 0 && text_[at_ - 1] == '-';
                auto value = number();
                if (!value) {
                    return std::nullopt;
                }
                value->above *= negative ? -1 : 1;
                all.push_back({*value, unit()});
            } else {
                ++at_;
            }
        }
        return all;
    }

  private:
    char peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    /// 12, 1,234, 1.50, 3/4 or the mixed 1 1/2; a percent sign divides by a hundred only beside fractions.
    std::optional<Fraction> number() {
        auto value = decimal();
        if (value && peek(0) == '/' && is_digit(peek(1))) {
            ++at_;
            return divided(*value, decimal());
        }
        // Mixed: digits, a space, digits, a slash.
        if (value && value->below == 1 && peek(0) == ' ' && is_digit(peek(1))) {
            const size_t before = at_;
            ++at_;
            const auto above = decimal();
            if (above && peek(0) == '/' && is_digit(peek(1))) {
                ++at_;
                const auto part = divided(*above, decimal());
                int64_t whole = 0;
                if (part && !__builtin_mul_overflow(value->above, part->below, &whole) &&
                    !__builtin_add_overflow(whole, part->above, &whole)) {
                    return reduced(whole, part->below);
                }
                return std::nullopt;
            }
            at_ = before;
        }
        return value;
    }

    static std::optional<Fraction> divided(Fraction a, std::optional<Fraction> b) {
        int64_t above = 0;
        int64_t below = 0;
        if (!b || __builtin_mul_overflow(a.above, b->below, &above) ||
            __builtin_mul_overflow(a.below, b->above, &below)) {
            return std::nullopt;
        }
        return reduced(above, below);
    }

    std::optional<Fraction> decimal() {
        int64_t above = 0;
        int64_t below = 1;
        bool point = false;
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == ',' && !point && is_digit(peek(1)) && is_digit(peek(2)) && is_digit(peek(3)) &&
                !is_digit(peek(4))) {
                continue; // thousands
            }
            if (c == '.' && !point && is_digit(peek(1))) {
                point = true;
                continue;
            }
            if (!is_digit(c)) {
                break;
            }
            if (__builtin_mul_overflow(above, int64_t{10}, &above) ||
                __builtin_add_overflow(above, int64_t{c - '0'}, &above) ||
                (point && __builtin_mul_overflow(below, int64_t{10}, &below))) {
                return std::nullopt;
            }
        }
        return reduced(above, below);
    }

    /// The word behind a number, in lower case and the singular.
    std::string unit() {
        size_t at = at_;
        while (at < text_.size() && (text_[at] == ' ' || text_[at] == '-')) {
            ++at;
        }
        if (at < text_.size() && text_[at] == '%') {
            return "%";
        }
        std::string word;
        while (at < text_.size() && is_letter(text_[at])) {
            word += static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at++])));
        }
        return canonical(word);
    }

    static std::string canonical(std::string word) {
        constexpr std::array<std::pair<std::string_view, std::string_view>, 22> names = {
            {{"h", "hour"},        {"hr", "hour"},
             {"hrs", "hour"},      {"min", "minute"},
             {"mins", "minute"},   {"sec", "second"},
             {"secs", "second"},   {"s", "second"},
             {"km", "kilometer"},  {"kilometre", "kilometer"},
             {"m", "meter"},       {"metre", "meter"},
             {"cm", "centimeter"}, {"centimetre", "centimeter"},
             {"kg", "kilogram"},   {"g", "gram"},
             {"usd", "dollar"},    {"buck", "dollar"},
             {"feet", "foot"},     {"ft", "foot"},
             {"inches", "inch"},   {"and", ""}}};
        const auto find = [&] {
            return std::ranges::find(names, word, [](const auto& n) { return n.first; });
        };
        auto found = find();
        if (found == names.end() && word.size() > 2 && word.ends_with('s')) {
            word.pop_back();
            found = find();
        }
        return found == names.end() ? word : std::string(found->second);
    }

    std::string_view text_;
    size_t at_ = 0;
};

bool is_known_unit(const std::string& word) {
    constexpr std::array<std::string_view, 17> units = {
        "hour",       "minute",   "second", "day",    "week", "month", "year", "kilometer", "meter",
        "centimeter", "kilogram", "gram",   "dollar", "cent", "foot",  "inch", "mile"};
    return std::ranges::find(units, word) != units.end();
}

bool same_quantities(const std::vector<Quantity>& given, const std::vector<Quantity>& expected) {
    if (given.size() != expected.size()) {
        return false;
    }
    if (given.size() == 1) {
        const std::string& a = given[0].unit;
        const std::string& b = expected[0].unit;
        return given[0].value == expected[0].value && (a == b || !is_known_unit(a) || !is_known_unit(b));
    }
    const auto named = [](const Quantity& q) { return !q.unit.empty(); };
    if (std::ranges::all_of(given, named) && std::ranges::all_of(expected, named)) {
        return std::ranges::is_permutation(given, expected, [](const Quantity& a, const Quantity& b) {
            return a.value == b.value && a.unit == b.unit;
        });
    }
    return std::ranges::equal(given, expected, {}, &Quantity::value, &Quantity::value);
}

std::string without_spaces(std::string text) {
    std::erase(text, ' ');
    return text;
}

/// Letters and digits in lower case; everything else ends a word.
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words(1);
    for (const char c : text) {
        if (is_letter(c) || is_digit(c)) {
            words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        } else if (!words.back().empty()) {
            words.emplace_back();
        }
    }
    std::erase_if(words, [](const std::string& word) { return word.empty() || word == "the"; });
    return words;
}

bool same_words(std::string_view given, std::string_view expected) {
    const auto a = words_of(given);
    const auto b = words_of(expected);
    if (b.empty() || a == b) {
        return a == b;
    }
    constexpr size_t short_sentence = 6; // "Sam is the tallest"
    return a.size() <= short_sentence && std::ranges::find(a, "not") == a.end() &&
           std::ranges::find(a, "or") == a.end() && !std::ranges::search(a, b).empty();
}

/// Holds symbols, or a variable right behind its factor ("2x"), that make it more than a quantity.
bool is_expression(std::string_view text) {
    for (size_t i = 0; i + 1 < text.size(); ++i) {
        const bool one_letter = is_letter(text[i + 1]) && (i + 2 == text.size() || !is_letter(text[i + 2]));
        if (is_digit(text[i]) && one_letter &&
            std::string_view("hmsg").find(text[i + 1]) == std::string::npos) {
            return true;
        }
    }
    return text.find_first_of("\\^_=()[]{}+*<>|") != std::string_view::npos;
}

} // namespace

std::optional<std::string> last_box(std::string_view text) {
    for (size_t from = std::string_view::npos;;) {
        const size_t boxed = text.rfind("\\boxed", from);
        const size_t fbox = text.rfind("\\fbox", from);
        const size_t at = boxed == std::string_view::npos  ? fbox
                          : fbox == std::string_view::npos ? boxed
                                                           : std::max(boxed, fbox);
        if (at == std::string_view::npos) {
            return std::nullopt;
        }
        size_t open = text.find('{', at);
        const size_t end = open == std::string_view::npos ? open : closing(text, open);
        if (end != std::string_view::npos) {
            return std::string(text.substr(open + 1, end - open - 1));
        }
        if (at == 0) {
            return std::nullopt;
        }
        from = at - 1;
    }
}

bool same_answer(std::string_view given, std::string_view expected) {
    const std::string a = normalise(given);
    const std::string b = normalise(expected);
    if (without_spaces(a) == without_spaces(b)) {
        return !b.empty();
    }
    if (is_expression(a) || is_expression(b)) {
        return false;
    }
    const auto numbers = Scanner(b).quantities();
    if (numbers && !numbers->empty()) {
        const auto found = Scanner(a).quantities();
        return found && same_quantities(*found, *numbers);
    }
    return same_words(a, b);
}

} // namespace spool
