#include "convert/wordpiece.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "convert/special_tokens.h"
#include "convert/token_list.h"
#include "core/error.h"
#include "core/json_file.h"

namespace spool {

namespace {

constexpr size_t largest_tokenizer = size_t{256} << 20U;
constexpr std::string_view continuation = "##";
constexpr std::string_view word_start = "▁";

[[noreturn]] void refuse(const JsonFields& tokenizer, std::string_view found, std::string_view expected) {
    fail(ErrorCode::unsupported,
         "{}: {}, expected {}; give a GGUF of the same model family with --tokenizer-from",
         tokenizer.source(), found, expected);
}

std::string text_of(const JsonFields& tokenizer, std::string_view key) {
    const JsonValue* value = tokenizer.find(key);
    return fmt::format("field '{}' is {}", key, value == nullptr ? "missing" : value->dump());
}

void check_model(const JsonFields& tokenizer) {
    const JsonFields model = tokenizer.object("model");
    if (const auto type = model.optional_string("type").value_or("BPE"); type != "WordPiece") {
        refuse(tokenizer, fmt::format("the model is '{}'", type), "'WordPiece' for a BERT encoder");
    }
    if (model.optional_string("continuing_subword_prefix").value_or(std::string(continuation)) !=
        continuation) {
        refuse(model, text_of(model, "continuing_subword_prefix"), "'##'");
    }
    const auto pre = tokenizer.optional_object("pre_tokenizer");
    if (!pre || pre->string("type") != "BertPreTokenizer") {
        refuse(tokenizer, text_of(tokenizer, "pre_tokenizer"), "a BertPreTokenizer");
    }
}

/// Lower case and accents, which libllama knows how to leave alone; the rest of it, it does always.
std::vector<GgufPair> normalizer_keys(const std::filesystem::path& folder, const JsonFields& tokenizer) {
    const auto normalizer = tokenizer.optional_object("normalizer");
    const bool fits = normalizer && normalizer->string("type") == "BertNormalizer" &&
                      normalizer->optional_flag("clean_text").value_or(true) &&
                      normalizer->optional_flag("handle_chinese_chars").value_or(true);
    if (!fits) {
        refuse(tokenizer, text_of(tokenizer, "normalizer"),
               "a BertNormalizer with clean_text and handle_chinese_chars");
    }
    const bool lowercase = normalizer->optional_flag("lowercase").value_or(true);
    std::vector<GgufPair> pairs = {{"tokenizer.ggml.normalizer.lowercase", lowercase}};
    if (const auto strip = normalizer->optional_flag("strip_accents")) {
        pairs.push_back({"tokenizer.ggml.normalizer.strip_accents", *strip});
    }
    if (const auto path = folder / "sentence_bert_config.json"; std::filesystem::exists(path)) {
        const JsonFields settings = read_json_file(path);
        if (settings.optional_flag("do_lower_case").value_or(false) && !lowercase) {
            refuse(settings, "field 'do_lower_case' is true while the tokenizer keeps upper case",
                   "both to be the same");
        }
    }
    return pairs;
}

/// The two tokens around a text: "[CLS]" and "[SEP]".
struct Frame {
    std::string first;
    std::string last;
};

Frame frame_of(const JsonFields& tokenizer) {
    const JsonFields processor = tokenizer.object("post_processor");
    const auto type = processor.string("type");
    const auto name_in = [&](const JsonValue& value, const char* key) {
        return value.is_object() && value.contains(key) && value[key].is_object() &&
                       value[key].contains("id") && value[key]["id"].is_string()
                   ? value[key]["id"].get<std::string>()
                   : std::string();
    };
    if (type == "BertProcessing") { // {"sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}
        const auto text = [&](const char* key) {
            const JsonValue* pair = processor.find(key);
            const bool named =
                pair != nullptr && pair->is_array() && !pair->empty() && (*pair)[0].is_string();
            return named ? (*pair)[0].get<std::string>() : std::string();
        };
        return {text("cls"), text("sep")};
    }
    const JsonValue* single = processor.find("single");
    if (type == "TemplateProcessing" && single != nullptr && single->is_array() && single->size() == 3 &&
        !name_in((*single)[1], "Sequence").empty()) {
        return {name_in((*single)[0], "SpecialToken"), name_in((*single)[2], "SpecialToken")};
    }
    return {};
}

uint32_t id_of(const std::vector<ListedToken>& tokens, std::string_view text) {
    for (size_t id = 0; id < tokens.size(); ++id) {
        if (tokens[id].text == text && tokens[id].type == TokenType::control) {
            return static_cast<uint32_t>(id);
        }
    }
    return static_cast<uint32_t>(tokens.size());
}

/// libllama puts bos_token before a text and sep_token behind it.
std::vector<GgufPair> special_keys(const std::filesystem::path& folder, const JsonFields& tokenizer,
                                   const std::vector<ListedToken>& tokens) {
    SpecialTokens special = find_special_tokens(folder, tokenizer, static_cast<uint32_t>(tokens.size()));
    const Frame frame = frame_of(tokenizer);
    const uint32_t first = id_of(tokens, frame.first);
    const uint32_t last = id_of(tokens, frame.last);
    if (first == tokens.size() || last == tokens.size()) {
        refuse(tokenizer, text_of(tokenizer, "post_processor"), "one special token on each side of the text");
    }
    special["bos"].id = special["cls"].id = first;
    special["eos"].id = special["sep"].id = last;
    if (!special["unk"].id) {
        const auto unknown = tokenizer.object("model").optional_string("unk_token").value_or("[UNK]");
        const uint32_t id = id_of(tokens, unknown);
        if (id == tokens.size()) {
            refuse(tokenizer, fmt::format("'{}' is no special token", unknown), "the token of unknown words");
        }
        special["unk"].id = id;
    }
    std::vector<GgufPair> pairs = special_token_ids(special);
    pairs.push_back({"tokenizer.ggml.add_bos_token", true});
    pairs.push_back({"tokenizer.ggml.add_eos_token", true});
    pairs.push_back({"tokenizer.ggml.add_sep_token", false});
    return pairs;
}

std::string libllama_text(const ListedToken& token) {
    if (token.type == TokenType::control) {
        return token.text;
    }
    if (token.text.starts_with(continuation)) {
        return token.text.substr(continuation.size());
    }
    return std::string(word_start) + token.text;
}

} // namespace

std::vector<GgufPair> wordpiece_from_folder(const std::filesystem::path& folder, uint32_t vocab) {
    const JsonFields tokenizer = read_json_file(folder / "tokenizer.json", largest_tokenizer);
    check_model(tokenizer);
    std::vector<GgufPair> pairs = normalizer_keys(folder, tokenizer);
    const std::vector<ListedToken> tokens = read_tokens(tokenizer, vocab);
    std::vector<std::string> texts;
    std::vector<int32_t> types;
    texts.reserve(vocab);
    types.reserve(vocab);
    for (const ListedToken& token : tokens) {
        texts.push_back(libllama_text(token));
        types.push_back(static_cast<int32_t>(token.type));
    }
    pairs.push_back({"tokenizer.ggml.model", std::string("bert")});
    pairs.push_back({"tokenizer.ggml.pre", std::string("default")});
    pairs.push_back({"tokenizer.ggml.tokens", GgufArray(std::move(texts))});
    pairs.push_back({"tokenizer.ggml.token_type", GgufArray(std::move(types))});
    std::ranges::move(special_keys(folder, tokenizer, tokens), std::back_inserter(pairs));
    return pairs;
}

} // namespace spool
