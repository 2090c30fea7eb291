#include "cli/chat_encoder.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/error.h"

namespace spool::cli {

namespace {

std::vector<ChatMessage> converted(const std::vector<Message>& messages) {
    std::vector<ChatMessage> result;
    result.reserve(messages.size());
    for (const Message& message : messages) {
        result.push_back({message.role, message.content});
    }
    return result;
}

std::string without_space(std::string text) {
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    text.erase(0, text.find_first_not_of(" \t\r\n"));
    return text;
}

} // namespace

ChatEncoder::ChatEncoder(const Model& model) : tokenizer_(model), template_(model) {
    const RenderedChat rendered = template_.render({{"user", "x"}}, true);
    const std::string start = without_space(rendered.thinking_start);
    const std::string end = without_space(rendered.thinking_end);
    if (!start.empty() && !end.empty()) {
        tags_ = {start, end};
    }
    end_ = find_end();
    if (end_ < 0) {
        fail(ErrorCode::unsupported, "{}: the vocabulary has no token that ends a reply",
             model.path().string());
    }
}

Token ChatEncoder::find_end() const {
    const std::string mark = "spool-end-of-reply";
    const std::string text = template_.render({{"user", "x"}, {"assistant", mark}}, false).prompt;
    const size_t found = text.rfind(mark);
    if (found != std::string::npos) {
        const auto tail = tokenizer_.encode(std::string_view(text).substr(found + mark.size()), false, true);
        const auto end = std::ranges::find_if(tail, [&](Token token) { return tokenizer_.is_end(token); });
        if (end != tail.end()) {
            return *end;
        }
    }
    return tokenizer_.eos();
}

EncodedPrompt ChatEncoder::prompt(const std::vector<Message>& messages) const {
    EncodedPrompt result;
    result.text = template_.render(converted(messages), true).prompt;
    const Token bos = tokenizer_.bos();
    const bool has_bos = bos >= 0 && result.text.starts_with(tokenizer_.piece(bos, true));
    result.tokens = tokenizer_.encode(result.text, !has_bos, true);
    return result;
}

std::vector<Token> ChatEncoder::reply(std::string_view text) const {
    // Control tokens divide a text before it is tokenised, so that encoding what is between them by itself
    // gives the same ids; text that merely spells another control token stays text. Tags that are no control
    // tokens are found by the tokenizer itself.
    struct Tag {
        std::string_view text;
        Token token;
    };
    std::vector<Tag> controls;
    for (const std::string_view tag : {std::string_view(tags_.start), std::string_view(tags_.end)}) {
        const auto ids = tokenizer_.encode(tag, false, true);
        if (ids.size() == 1 && tokenizer_.encode(tag, false, false) != ids) {
            controls.push_back({tag, ids.front()});
        }
    }
    std::vector<Token> tokens;
    while (!text.empty()) {
        size_t cut = text.size();
        std::optional<Tag> next;
        for (const Tag& tag : controls) {
            const size_t found = text.find(tag.text);
            if (found < cut) {
                cut = found;
                next = tag;
            }
        }
        if (cut > 0) {
            const auto ids = tokenizer_.encode(text.substr(0, cut), false, false);
            tokens.insert(tokens.end(), ids.begin(), ids.end());
        }
        if (next) {
            tokens.push_back(next->token);
            cut += next->text.size();
        }
        text.remove_prefix(cut);
    }
    return tokens;
}

bool ChatEncoder::holds_control_token(std::string_view text) const {
    return tokenizer_.encode(text, false, true) != tokenizer_.encode(text, false, false);
}

} // namespace spool::cli
