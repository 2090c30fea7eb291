#include "convert/tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "convert/pre_tokenizer.h"
#include "convert/special_tokens.h"
#include "core/error.h"
#include "core/json_file.h"

namespace spool {

namespace {

constexpr size_t largest_tokenizer = size_t{256} << 20;
constexpr std::string_view prefix = "tokenizer.";
constexpr std::string_view model_key = "tokenizer.ggml.model";
constexpr std::string_view tokens_key = "tokenizer.ggml.tokens";
constexpr uint32_t granite_vocab = 49152; // SmolLM and Granite: llama.cpp's converter never adds BOS there

enum TokenType : int32_t { normal = 1, control = 3, user_defined = 4, unused = 5 };

struct Token {
    std::string text;
    TokenType type = normal;
};
using Tokens = std::vector<std::optional<Token>>;

void check_byte_level_bpe(const JsonFields& tokenizer, const JsonFields& model) {
    const auto type = model.optional_string("type").value_or("BPE");
    const auto decoder = tokenizer.optional_object("decoder");
    const auto decoder_type = decoder ? decoder->string("type") : "none";
    if (type != "BPE" || model.optional_flag("byte_fallback").value_or(false) ||
        decoder_type != "ByteLevel") {
        fail(ErrorCode::unsupported,
             "{}: model '{}' with decoder '{}', expected byte-level BPE; give a GGUF of the same "
             "model family with --tokenizer-from",
             tokenizer.source(), type, decoder_type);
    }
    for (const auto* field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        if (const auto value = model.optional_string(field); value && !value->empty()) {
            fail(ErrorCode::unsupported,
                 "{}: field '{}' is '{}', expected none; give a GGUF of the same model family "
                 "with --tokenizer-from",
                 model.source(), field, *value);
        }
    }
}

void place(const JsonFields& source, Tokens& tokens, uint32_t id, Token token) {
    if (id >= tokens.size()) {
        fail(ErrorCode::bad_file, "{}: token '{}' has id {}, but config.json's vocab_size is {}",
             source.source(), token.text, id, tokens.size());
    }
    tokens[id] = std::move(token);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string result;
    for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
        result.append(text.substr(0, at)).append(to);
        text.remove_prefix(at + from.size());
    }
    return result.append(text);
}

/// Some models do not mark control tokens as special; their shape gives them away.
bool looks_special(std::string_view text) {
    const auto enclosed = [&](std::string_view open, std::string_view close) {
        return text.starts_with(open) && text.ends_with(close);
    };
    return text == "<pad>" || text == "<mask>" || enclosed("<|", "|>") || enclosed("<｜", "｜>") ||
           enclosed("<unused", ">");
}

Token added_token(const JsonFields& fields) {
    Token token = {.text = fields.string("content"), .type = user_defined};
    if (fields.optional_flag("special").value_or(false) || looks_special(token.text)) {
        token.type = control;
        return token;
    }
    token.text = replaced(token.text, "▁", " ");
    return token;
}

Tokens read_tokens(const JsonFields& tokenizer, const JsonFields& model, uint32_t vocab) {
    Tokens tokens(vocab);
    const JsonFields map = model.object("vocab");
    for (const auto& [text, id] : map.json().items()) {
        if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab) {
            fail(ErrorCode::bad_file, "{}: token '{}' has id {}, but config.json's vocab_size is {}",
                 map.source(), text, id.dump(), vocab);
        }
        tokens[id.get<size_t>()] = {.text = text, .type = normal};
    }
    if (const JsonValue* added = tokenizer.find("added_tokens"); added != nullptr && added->is_array()) {
        for (const JsonValue& json : *added) {
            const JsonFields fields(tokenizer.source() + ": added_tokens", json);
            place(fields, tokens, fields.u32("id"), added_token(fields));
        }
    }
    return tokens;
}

/// "a b", or ["a", "b"] as newer files write it. A space inside a part is written as byte-level BPE writes
/// it.
std::string merge_text(const JsonFields& model, const JsonValue& merge) {
    if (merge.is_string()) {
        return merge.get<std::string>();
    }
    const bool pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (!pair) {
        fail(ErrorCode::bad_file, R"({}: field 'merges' holds {}, expected "a b" or ["a", "b"])",
             model.source(), merge.dump());
    }
    constexpr std::string_view byte_level_space = "Ġ";
    return fmt::format("{} {}", replaced(merge[0].get<std::string>(), " ", byte_level_space),
                       replaced(merge[1].get<std::string>(), " ", byte_level_space));
}

std::vector<std::string> read_merges(const JsonFields& model) {
    std::vector<std::string> merges;
    const JsonValue* list = model.find("merges");
    if (list == nullptr || !list->is_array()) {
        fail(ErrorCode::bad_file, "{}: field 'merges' is not a list", model.source());
    }
    for (const JsonValue& merge : *list) {
        merges.push_back(merge_text(model, merge));
    }
    return merges;
}

void set_pair(std::vector<GgufPair>& pairs, std::string key, GgufValue value) {
    std::erase_if(pairs, [&](const GgufPair& pair) { return pair.key == key; });
    pairs.push_back({std::move(key), std::move(value)});
}

/// What llama.cpp's converter writes for the Llama architecture only.
void add_llama_keys(const std::filesystem::path& folder, uint32_t vocab, std::vector<GgufPair>& pairs) {
    if (const auto path = folder / "tokenizer_config.json"; std::filesystem::exists(path)) {
        if (const auto flag = read_json_file(path).optional_flag("add_prefix_space")) {
            set_pair(pairs, "tokenizer.ggml.add_space_prefix", *flag);
        }
    }
    if (vocab == granite_vocab) {
        set_pair(pairs, "tokenizer.ggml.add_bos_token", false);
    }
}

} // namespace

std::vector<GgufPair> tokenizer_from_folder(const std::filesystem::path& folder,
                                            const std::string& architecture, uint32_t vocab) {
    const auto path = folder / "tokenizer.json";
    if (!std::filesystem::exists(path)) {
        fail(ErrorCode::not_found, "{}: missing; give a GGUF of the same model family with --tokenizer-from",
             path.string());
    }
    const JsonFields tokenizer = read_json_file(path, largest_tokenizer);
    const JsonFields model = tokenizer.object("model");
    check_byte_level_bpe(tokenizer, model);
    std::vector<std::string> texts;
    std::vector<int32_t> types;
    for (auto& token : read_tokens(tokenizer, model, vocab)) {
        types.push_back(token ? token->type : unused);
        texts.push_back(token ? std::move(token->text) : fmt::format("[PAD{}]", texts.size()));
    }
    std::vector<GgufPair> pairs = {{std::string(model_key), std::string("gpt2")},
                                   {"tokenizer.ggml.pre", pre_tokenizer_name(tokenizer)},
                                   {std::string(tokens_key), GgufArray(std::move(texts))},
                                   {"tokenizer.ggml.token_type", GgufArray(std::move(types))},
                                   {"tokenizer.ggml.merges", GgufArray(read_merges(model))}};
    std::ranges::move(special_tokens(folder, tokenizer, vocab), std::back_inserter(pairs));
    if (architecture == "llama") {
        add_llama_keys(folder, vocab, pairs);
    }
    return pairs;
}

std::vector<GgufPair> tokenizer_from_gguf(const GgufFile& model, uint32_t vocab) {
    if (const auto found = model.strings(tokens_key).size(); found != vocab) {
        fail(ErrorCode::incompatible,
             "{}: its tokenizer has {} tokens, but the model to convert has a vocabulary of {}; "
             "give a GGUF of the same model family",
             model.path().string(), found, vocab);
    }
    std::vector<GgufPair> pairs;
    for (const GgufPair& pair : model.pairs()) {
        if (pair.key.starts_with(prefix)) {
            pairs.push_back(pair);
        }
    }
    return pairs;
}

} // namespace spool
