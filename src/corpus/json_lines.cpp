#include "corpus/json_lines.h"

#include <cstring>

#include "core/error.h"

namespace spool {

namespace {

constexpr size_t buffer_bytes = size_t{1} << 17U;
constexpr size_t longest_line = size_t{64} << 20U;

} // namespace

JsonLines::JsonLines(const std::filesystem::path& path)
    : path_(path), stream_(open_compressed(path)), buffer_(buffer_bytes) {}

bool JsonLines::refill() {
    try {
        begin_ = 0;
        end_ = stream_->read(buffer_);
    } catch (const Error& error) {
        fail(error.code(), "{} (after line {})", error.what(), line_);
    }
    return end_ > 0;
}

/// Fills text_ with the next line, without its end; false at the end of the file.
bool JsonLines::read_line() {
    text_.clear();
    while (begin_ < end_ || refill()) {
        const char* from = buffer_.data() + begin_;
        const auto* newline = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_));
        const size_t count = newline != nullptr ? static_cast<size_t>(newline - from) : end_ - begin_;
        text_.append(from, count);
        begin_ += count;
        if (text_.size() > longest_line) {
            fail(ErrorCode::bad_file, "{}:{}: a line of more than 64 MiB; is this JSON Lines?",
                 path_.string(), line_ + 1);
        }
        if (newline != nullptr) {
            ++begin_;
            return true;
        }
    }
    return !text_.empty();
}

const std::string* JsonLines::next_text() {
    while (read_line()) {
        ++line_;
        if (text_.find_first_not_of(" \t\r") != std::string::npos) {
            return &text_;
        }
    }
    return nullptr;
}

std::optional<Json> JsonLines::next() {
    const std::string* text = next_text();
    if (text == nullptr) {
        return std::nullopt;
    }
    Json value = Json::parse(*text, nullptr, false);
    if (value.is_discarded()) {
        fail(ErrorCode::bad_file, "{}:{}: the line is not JSON", path_.string(), line_);
    }
    return value;
}

} // namespace spool
