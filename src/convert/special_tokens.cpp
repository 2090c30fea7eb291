#include "convert/special_tokens.h"

#include <array>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/file.h"

namespace spool {

namespace {

struct Role {
    std::string_view name; ///< NAME_token in tokenizer_config.json, NAME_token_id in config.json
    std::string_view key;
};

/// "seperator" is how GGUF spells it.
constexpr std::array<Role, 7> roles = {{{"bos", "tokenizer.ggml.bos_token_id"},
                                        {"eos", "tokenizer.ggml.eos_token_id"},
                                        {"unk", "tokenizer.ggml.unknown_token_id"},
                                        {"sep", "tokenizer.ggml.seperator_token_id"},
                                        {"pad", "tokenizer.ggml.padding_token_id"},
                                        {"cls", "tokenizer.ggml.cls_token_id"},
                                        {"mask", "tokenizer.ggml.mask_token_id"}}};

std::optional<JsonFields> read_if_there(const std::filesystem::path& path) {
    return std::filesystem::exists(path) ? std::optional(read_json_file(path)) : std::nullopt;
}

/// A token is written as its text or as {"content": text, ...}.
std::optional<std::string> token_text(const JsonFields& config, std::string_view key) {
    const JsonValue* value = config.find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    return value->is_object() ? config.object(key).optional_string("content") : config.optional_string(key);
}

std::optional<uint32_t> added_token_id(const JsonFields& tokenizer, const std::string& content) {
    if (const JsonValue* added = tokenizer.find("added_tokens"); added != nullptr && added->is_array()) {
        for (const JsonValue& token : *added) {
            const JsonFields fields(tokenizer.source() + ": added_tokens", token);
            if (fields.optional_string("content") == content) {
                return fields.u32("id");
            }
        }
    }
    return std::nullopt;
}

/// One id, or the first of a list.
std::optional<uint32_t> token_id(const JsonFields& config, const std::string& key) {
    const JsonValue* value = config.find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_array()) {
        return config.optional_u32(key);
    }
    return value->empty()
               ? std::nullopt
               : JsonFields(config.source(), JsonValue::object({{key, value->front()}})).optional_u32(key);
}

std::optional<std::string> leading_or_trailing(const JsonValue& piece) {
    if (!piece.is_object() || !piece.contains("SpecialToken")) {
        return std::nullopt;
    }
    const JsonValue& token = piece.at("SpecialToken");
    return token.is_object() && token.contains("id") && token.at("id").is_string()
               ? std::optional(token.at("id").get<std::string>())
               : std::nullopt;
}

using AddedFlags = std::map<std::string, bool>;

/// "$A" between at most one leading and one trailing special token.
void read_template(const JsonFields& processor, const std::optional<std::string>& bos,
                   const std::optional<std::string>& eos, AddedFlags& added) {
    const JsonValue* single = processor.find("single");
    if (single == nullptr || !single->is_array() || single->size() < 2) {
        return;
    }
    const auto first = leading_or_trailing(single->front());
    const auto last = leading_or_trailing(single->back());
    const size_t specials = (first ? 1U : 0U) + (last ? 1U : 0U);
    if (single->size() != specials + 1 || (first && first != bos) || (last && last != eos)) {
        fail(ErrorCode::unsupported,
             "{}: field 'single' is {}; llama.cpp can only put bos_token before and eos_token "
             "behind the text; give a GGUF of the same model family with --tokenizer-from",
             processor.source(), single->dump());
    }
    if (first) {
        added["bos"] = true;
    }
    if (last) {
        added["eos"] = true;
    }
}

AddedFlags added_by_post_processor(const JsonFields& tokenizer, const std::optional<std::string>& bos,
                                   const std::optional<std::string>& eos) {
    AddedFlags added;
    const auto outer = tokenizer.optional_object("post_processor");
    if (!outer) {
        return added;
    }
    const JsonValue* list = outer->find("processors");
    for (const JsonValue& json :
         list != nullptr && list->is_array() ? *list : JsonValue::array({outer->json()})) {
        const JsonFields processor(outer->source(), json);
        const auto type = processor.string("type");
        if (type == "ByteLevel") {
            added.emplace("bos", false);
            added.emplace("eos", false);
        } else if (type == "TemplateProcessing") {
            read_template(processor, bos, eos, added);
        } else {
            fail(ErrorCode::unsupported,
                 "{}: type '{}' is not one spool converts; give a GGUF of the same model family "
                 "with --tokenizer-from",
                 processor.source(), type);
        }
    }
    return added;
}

void add_chat_templates(const std::filesystem::path& folder, const std::optional<JsonFields>& config,
                        std::vector<GgufPair>& pairs) {
    constexpr std::string_view key = "tokenizer.chat_template";
    const JsonValue* value = config ? config->find("chat_template") : nullptr;
    if (!config || value == nullptr) {
        if (const auto path = folder / "chat_template.jinja"; std::filesystem::exists(path)) {
            pairs.push_back({std::string(key), read_text(path)});
        }
        return;
    }
    if (!value->is_array()) {
        pairs.push_back({std::string(key), config->string("chat_template")});
        return;
    }
    std::vector<std::string> names;
    for (const JsonValue& entry : *value) {
        const JsonFields fields(config->source() + ": chat_template", entry);
        const auto name = fields.string("name");
        if (name == "default") {
            pairs.push_back({std::string(key), fields.string("template")});
        } else {
            pairs.push_back({std::string(key) + "." + name, fields.string("template")});
            names.push_back(name);
        }
    }
    if (!names.empty()) {
        pairs.push_back({"tokenizer.chat_templates", GgufArray(names)});
    }
}

} // namespace

SpecialTokens find_special_tokens(const std::filesystem::path& folder, const JsonFields& tokenizer,
                                  uint32_t vocab) {
    const auto tokenizer_config = read_if_there(folder / "tokenizer_config.json");
    const auto config = read_if_there(folder / "config.json");
    const auto generation = read_if_there(folder / "generation_config.json");
    SpecialTokens found;
    for (const auto& [name, key] : roles) {
        const std::string role(name);
        SpecialToken& token = found[role];
        if (tokenizer_config) {
            token.text = token_text(*tokenizer_config, role + "_token");
        }
        token.id = token.text ? added_token_id(tokenizer, *token.text) : std::nullopt;
        for (const auto* fallback : {&config, &generation}) {
            if (!token.id && *fallback) {
                token.id = token_id(**fallback, role + "_token_id");
            }
        }
        if (token.id && *token.id >= vocab) {
            fail(ErrorCode::bad_file, "{}: the {} token has id {}, but the vocabulary has {} tokens",
                 folder.string(), role, *token.id, vocab);
        }
    }
    return found;
}

std::vector<GgufPair> special_token_ids(const SpecialTokens& tokens) {
    std::vector<GgufPair> pairs;
    for (const auto& [name, key] : roles) {
        const auto found = tokens.find(name);
        const std::optional<uint32_t> id = found == tokens.end() ? std::nullopt : found->second.id;
        if (id) {
            pairs.push_back({std::string(key), *id});
        }
    }
    return pairs;
}

std::vector<GgufPair> special_tokens(const std::filesystem::path& folder, const JsonFields& tokenizer,
                                     uint32_t vocab) {
    const auto tokenizer_config = read_if_there(folder / "tokenizer_config.json");
    const SpecialTokens tokens = find_special_tokens(folder, tokenizer, vocab);
    std::vector<GgufPair> pairs = special_token_ids(tokens);
    AddedFlags added = added_by_post_processor(tokenizer, tokens.at("bos").text, tokens.at("eos").text);
    for (const std::string role : {"bos", "eos", "sep"}) {
        if (const auto flag =
                tokenizer_config ? tokenizer_config->optional_flag("add_" + role + "_token") : std::nullopt) {
            added.emplace(role, *flag);
        }
    }
    for (const auto& [role, value] : added) {
        pairs.push_back({"tokenizer.ggml.add_" + role + "_token", value});
    }
    add_chat_templates(folder, tokenizer_config, pairs);
    return pairs;
}

} // namespace spool
