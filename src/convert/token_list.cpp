#include "convert/token_list.h"

#include "core/error.h"

namespace spool {

namespace {

using Tokens = std::vector<std::optional<ListedToken>>;

void place(const JsonFields& source, Tokens& tokens, uint32_t id, ListedToken token) {
    if (id >= tokens.size()) {
        fail(ErrorCode::bad_file, "{}: token '{}' has id {}, but config.json's vocab_size is {}",
             source.source(), token.text, id, tokens.size());
    }
    tokens[id] = std::move(token);
}

/// Some models do not mark control tokens as special; their shape gives them away.
bool looks_special(std::string_view text) {
    const auto enclosed = [&](std::string_view open, std::string_view close) {
        return text.starts_with(open) && text.ends_with(close);
    };
    return text == "<pad>" || text == "<mask>" || enclosed("<|", "|>") || enclosed("<｜", "｜>") ||
           enclosed("<unused", ">");
}

ListedToken added_token(const JsonFields& fields) {
    ListedToken token = {.text = fields.string("content"), .type = TokenType::user_defined};
    if (fields.optional_flag("special").value_or(false) || looks_special(token.text)) {
        token.type = TokenType::control;
        return token;
    }
    token.text = replaced(token.text, "▁", " ");
    return token;
}

} // namespace

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string result;
    for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
        result.append(text.substr(0, at)).append(to);
        text.remove_prefix(at + from.size());
    }
    return result.append(text);
}

std::vector<ListedToken> read_tokens(const JsonFields& tokenizer, uint32_t vocab) {
    Tokens tokens(vocab);
    const JsonFields map = tokenizer.object("model").object("vocab");
    for (const auto& [text, id] : map.json().items()) {
        if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab) {
            fail(ErrorCode::bad_file, "{}: token '{}' has id {}, but config.json's vocab_size is {}",
                 map.source(), text, id.dump(), vocab);
        }
        tokens[id.get<size_t>()] = {.text = text, .type = TokenType::normal};
    }
    if (const JsonValue* added = tokenizer.find("added_tokens"); added != nullptr && added->is_array()) {
        for (const JsonValue& json : *added) {
            const JsonFields fields(tokenizer.source() + ": added_tokens", json);
            place(fields, tokens, fields.u32("id"), added_token(fields));
        }
    }
    std::vector<ListedToken> all;
    all.reserve(vocab);
    for (auto& token : tokens) {
        all.push_back(token ? std::move(*token)
                            : ListedToken{fmt::format("[PAD{}]", all.size()), TokenType::unused});
    }
    return all;
}

} // namespace spool
