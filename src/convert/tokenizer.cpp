#include "convert/tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "convert/pre_tokenizer.h"
#include "convert/special_tokens.h"
#include "convert/token_list.h"
#include "core/error.h"
#include "core/json_file.h"

namespace spool {

namespace {

constexpr size_t largest_tokenizer = size_t{256} << 20;
constexpr std::string_view prefix = "tokenizer.";
constexpr std::string_view model_key = "tokenizer.ggml.model";
constexpr std::string_view tokens_key = "tokenizer.ggml.tokens";
constexpr uint32_t granite_vocab = 49152; // SmolLM and Granite: llama.cpp's converter never adds BOS there

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
    texts.reserve(vocab);
    types.reserve(vocab);
    for (auto& token : read_tokens(tokenizer, vocab)) {
        types.push_back(static_cast<int32_t>(token.type));
        texts.push_back(std::move(token.text));
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
