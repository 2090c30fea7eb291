#include "chat/reasoning.h"

#include <algorithm>

#include "core/error.h"

namespace spool {

namespace {

/// The longest end of `text` that `tag` begins with.
size_t partial_match(std::string_view text, std::string_view tag) {
    size_t length = std::min(text.size(), tag.size() - 1);
    while (length > 0 && !tag.starts_with(text.substr(text.size() - length))) {
        --length;
    }
    return length;
}

} // namespace

ReasoningFormat reasoning_format(const std::string& name, const ChatTemplate& chat) {
    if (name == "auto") {
        const RenderedChat rendered = chat.render({{"user", "?"}}, true);
        return {rendered.thinking_start, rendered.thinking_end};
    }
    if (name == "think") {
        return {"<think>", "</think>"};
    }
    if (name != "none") {
        fail(ErrorCode::invalid_argument, "unknown reasoning format \"{}\"; expected auto, think or none",
             name);
    }
    return {};
}

ReasoningStream::Piece ReasoningStream::push(std::string_view text) {
    Piece piece;
    std::string rest = held_ + std::string(text);
    held_.clear();
    if (thinking_) {
        const size_t found = rest.find(format_.end);
        if (found == std::string::npos) {
            const size_t keep = partial_match(rest, format_.end);
            held_ = rest.substr(rest.size() - keep);
            piece.thinking = rest.substr(0, rest.size() - keep);
            return piece;
        }
        piece.thinking = rest.substr(0, found);
        rest.erase(0, found + format_.end.size());
        thinking_ = false;
    }
    if (!answer_begun_) { // blank lines between thinking and answer belong to neither
        rest.erase(0, std::min(rest.size(), rest.find_first_not_of(" \t\r\n")));
        answer_begun_ = !rest.empty();
    }
    piece.answer = std::move(rest);
    return piece;
}

ReasoningStream::Piece ReasoningStream::finish() {
    Piece piece;
    (thinking_ ? piece.thinking : piece.answer) = std::move(held_);
    held_.clear();
    return piece;
}

} // namespace spool
