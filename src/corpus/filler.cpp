#include "corpus/filler.h"

#include <algorithm>

#include "core/error.h"
#include "corpus/json_lines.h"
#include "corpus/sentences.h"

namespace spool {

namespace {

constexpr size_t most_text = size_t{64} << 20U;
constexpr size_t made_up_bytes = size_t{1} << 20U;
constexpr std::string_view separator = "\n\n";

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The first word's start at or behind `from`; text.size() if there is none.
size_t word_start(std::string_view text, size_t from) {
    while (from < text.size() && is_space(text[from])) {
        ++from;
    }
    return from;
}

size_t word_end(std::string_view text, size_t from) {
    while (from < text.size() && !is_space(text[from])) {
        ++from;
    }
    return from;
}

const std::string* text_of(const Json& record) {
    for (const char* name : {"text", "think"}) {
        const auto found = record.is_object() ? record.find(name) : record.end();
        if (found != record.end() && found->is_string()) {
            return &found->get_ref<const std::string&>();
        }
    }
    return nullptr;
}

} // namespace

std::vector<Token> line_tokens(const Encoder& encoder, const std::string& text) {
    // Behind a newline, because some tokenizers put a space before the first word of all.
    const std::vector<Token> anchor = encoder.reply("\n");
    std::vector<Token> tokens = encoder.reply("\n" + text);
    if (tokens.size() < anchor.size() || !std::equal(anchor.begin(), anchor.end(), tokens.begin())) {
        fail(ErrorCode::unsupported,
             "this model's tokenizer merges a newline with the line behind it, so that "
             "distances in tokens cannot be set");
    }
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(anchor.size()));
    return tokens;
}

Filler::Filler(const std::filesystem::path& path, const ThinkTags& tags, double val_share) {
    JsonLines lines(path);
    while (train_.size() + val_.size() < most_text) {
        const auto record = lines.next();
        if (!record) {
            break;
        }
        const std::string* text = text_of(*record);
        if (text != nullptr && text->find(tags.start) == std::string::npos &&
            text->find(tags.end) == std::string::npos) {
            add(*text, val_share);
        }
    }
    if (word_start(train_, 0) == train_.size()) {
        fail(ErrorCode::bad_file,
             R"({}: no text to fill with; expected JSON Lines with a field "text" or "think")",
             path.string());
    }
}

Filler::Filler() : train_(made_up_text(made_up_bytes, 1)), val_(made_up_text(made_up_bytes, 2)) {}

void Filler::add(std::string_view text, double val_share) {
    const auto share = static_cast<size_t>(val_share * static_cast<double>(text.size()));
    const size_t cut = word_end(text, text.size() - share);
    train_ += text.substr(0, cut);
    train_ += separator;
    if (word_start(text, cut) < text.size()) {
        val_ += text.substr(word_start(text, cut));
        val_ += separator;
    }
}

FillerReader::FillerReader(const std::string& text, Random& random)
    : text_(text), position_(random.below(text.size())) {
    skip_word();
}

void FillerReader::skip_word() {
    position_ = word_start(text_, word_end(text_, position_));
    if (position_ >= text_.size()) {
        position_ = word_start(text_, 0);
    }
}

/// About that many bytes from position_ on, from the start again at the end, cut at a word's end.
std::string FillerReader::window(size_t bytes) const {
    std::string result = text_.substr(position_, bytes + 64);
    while (result.size() < bytes) {
        result += text_.substr(word_start(text_, 0), bytes + 64 - result.size());
    }
    const size_t space = result.find_last_of(" \t\r\n");
    if (space != std::string::npos && space > 0) {
        result.resize(space);
    }
    return result;
}

std::string FillerReader::take(const Encoder& encoder, size_t tokens) {
    constexpr int places = 500;
    constexpr int cuts = 4;
    size_t bytes = 5 * tokens + 64;
    for (int place = 0; place < places; ++place) {
        std::string text = window(bytes);
        std::vector<Token> ids = line_tokens(encoder, text);
        while (ids.size() < tokens && bytes < 64 * (tokens + 64)) {
            bytes *= 2;
            text = window(bytes);
            ids = line_tokens(encoder, text);
        }
        // The newline takes a token, or merges with the punctuation before it: try the words' ends nearby.
        size_t cut = 0;
        for (size_t i = 0; i + 3 < std::min(tokens, ids.size()); ++i) {
            cut += encoder.piece(ids[i]).size();
        }
        cut = std::min(cut, text.size());
        for (int attempt = 0; attempt < cuts && cut < text.size(); ++attempt) {
            cut = word_end(text, attempt == 0 ? cut : word_start(text, cut));
            const std::string line = text.substr(0, cut) + "\n";
            if (line_tokens(encoder, line).size() == tokens) {
                position_ = (position_ + cut) % text_.size();
                skip_word();
                return line;
            }
        }
        skip_word();
    }
    fail(ErrorCode::unsupported,
         "no part of the filler text is {} tokens long; give more text with --filler, or another --distance",
         tokens);
}

} // namespace spool
