#include <gtest/gtest.h>

#include "convert/llama_probe.h"
#include "convert/tokenizer.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {

namespace {

using test::expect_error;
using test::fixture;
using test::LlamaProbe;
using test::TemporaryFolder;

constexpr uint32_t vocab = 304;

std::filesystem::path folder_of(const std::string& kind) {
    const std::string model = kind == "smollm" ? "llama" : kind == "qwen2" ? "qwen2" : "tokenizers/" + kind;
    return fixture("convert/data/" + model);
}

/// A GGUF that holds a tokenizer and no model.
void write_vocabulary(const std::vector<GgufPair>& tokenizer, const std::filesystem::path& path) {
    GgufWriter writer;
    writer.set("general.architecture", std::string("llama"));
    writer.set("llama.block_count", uint32_t{1});
    writer.set("llama.context_length", uint32_t{64});
    writer.set("llama.embedding_length", uint32_t{32});
    writer.set("llama.feed_forward_length", uint32_t{32});
    writer.set("llama.attention.head_count", uint32_t{1});
    writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    for (const GgufPair& pair : tokenizer) {
        writer.set(pair.key, pair.value);
    }
    writer.write(path);
}

const GgufValue* find(const std::vector<GgufPair>& pairs, std::string_view key) {
    const auto it = std::ranges::find(pairs, key, &GgufPair::key);
    return it == pairs.end() ? nullptr : &it->value;
}

class TokenizerTable : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenizerTable, GivesTheIdsOfTheTokenizersLibrary) {
    const std::string& kind = GetParam();
    const TemporaryFolder temp;
    const auto pairs = tokenizer_from_folder(folder_of(kind), "qwen2", vocab);
    ASSERT_NE(find(pairs, "tokenizer.ggml.pre"), nullptr);
    EXPECT_EQ(std::get<std::string>(*find(pairs, "tokenizer.ggml.pre")), kind);
    write_vocabulary(pairs, temp / "v.gguf");
    const LlamaProbe probe(temp / "v.gguf", true);
    EXPECT_EQ(probe.vocabulary(), vocab);
    const auto goldens = read_json_file(fixture("convert/data/tokenizers/golden.json"));
    for (const JsonValue& golden : *goldens.find(kind)) {
        const auto text = golden.at("text").get<std::string>();
        EXPECT_EQ(probe.encode(text, false), golden.at("ids").get<std::vector<llama_token>>()) << text;
        EXPECT_EQ(probe.encode(text, true), golden.at("ids_with_special").get<std::vector<llama_token>>())
            << text;
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerTable,
                         ::testing::Values("smollm", "gpt-2", "qwen2", "deepseek-r1-qwen", "llama-bpe",
                                           "smaug-bpe"),
                         [](const auto& kind) {
                             std::string name = kind.param;
                             std::erase(name, '-');
                             return name;
                         });

TEST(ConvertTokenizer, FillsUnusedIdsAndKeepsSpecialTokensApart) {
    const auto pairs = tokenizer_from_folder(folder_of("deepseek-r1-qwen"), "qwen2", vocab);
    const auto& tokens =
        std::get<std::vector<std::string>>(std::get<GgufArray>(*find(pairs, "tokenizer.ggml.tokens")));
    const auto& types =
        std::get<std::vector<int32_t>>(std::get<GgufArray>(*find(pairs, "tokenizer.ggml.token_type")));
    ASSERT_EQ(tokens.size(), vocab);
    EXPECT_EQ(tokens[303], "[PAD303]");
    EXPECT_EQ(types[303], 5);
    const auto bos = std::get<uint32_t>(*find(pairs, "tokenizer.ggml.bos_token_id"));
    EXPECT_EQ(tokens[bos], "<｜begin▁of▁sentence｜>");
    EXPECT_EQ(types[bos], 3);
    EXPECT_EQ(types[300], 4) << tokens[300]; // "<tool>", added but not special
    EXPECT_TRUE(std::get<bool>(*find(pairs, "tokenizer.ggml.add_bos_token")));
    EXPECT_EQ(std::get<std::string>(*find(pairs, "tokenizer.chat_template")),
              "{% for m in messages %}{{ m.content }}{% endfor %}");
}

TEST(ConvertTokenizer, RefusesAnUnknownPreTokenizerWithAdvice) {
    const TemporaryFolder temp;
    JsonValue json = read_json_file(folder_of("smollm") / "tokenizer.json").json();
    const auto refuses = [&](const std::function<void(JsonValue&)>& change) {
        JsonValue copy = json;
        change(copy);
        write_text(temp / "tokenizer.json", copy.dump());
        expect_error(ErrorCode::unsupported, {"tokenizer.json", "--tokenizer-from"},
                     [&] { tokenizer_from_folder(temp.path(), "llama", vocab); });
    };
    refuses([](JsonValue& t) { t["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = false; });
    refuses([](JsonValue& t) { t["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; });
    refuses([](JsonValue& t) { t["pre_tokenizer"] = nullptr; });
    refuses([](JsonValue& t) { t["normalizer"] = {{"type", "Lowercase"}}; });
    refuses([](JsonValue& t) { t["model"]["ignore_merges"] = true; });
    refuses([](JsonValue& t) { t["model"]["byte_fallback"] = true; });
    refuses([](JsonValue& t) { t["model"]["type"] = "Unigram"; });
    refuses([](JsonValue& t) { t["decoder"] = {{"type", "Metaspace"}}; });
    refuses([](JsonValue& t) { t["post_processor"] = {{"type", "BertProcessing"}}; });
}

TEST(ConvertTokenizer, HostileFilesGiveErrors) {
    const TemporaryFolder temp;
    JsonValue json = read_json_file(folder_of("smollm") / "tokenizer.json").json();
    const auto refuses = [&](const std::function<void(JsonValue&)>& change) {
        JsonValue copy = json;
        change(copy);
        write_text(temp / "tokenizer.json", copy.dump());
        expect_error(ErrorCode::bad_file, {"tokenizer.json"},
                     [&] { tokenizer_from_folder(temp.path(), "llama", vocab); });
    };
    refuses([](JsonValue& t) { t["model"]["vocab"]["x1"] = 304; });
    refuses([](JsonValue& t) { t["model"]["vocab"]["x1"] = -1; });
    refuses([](JsonValue& t) { t["model"]["vocab"]["x1"] = {1}; });
    refuses([](JsonValue& t) { t["model"]["vocab"] = {1, 2}; });
    refuses([](JsonValue& t) { t["model"]["merges"] = {{"a"}}; });
    refuses([](JsonValue& t) { t["model"]["merges"] = nullptr; });
    refuses([](JsonValue& t) { t["model"] = 7; });
    refuses([](JsonValue& t) { t["added_tokens"][0]["id"] = 1e12; });
    refuses([](JsonValue& t) { t["added_tokens"][0] = "x"; });
}

TEST(ConvertTokenizer, ComesFromAGgufOfTheSameVocabularyOnly) {
    const TemporaryFolder temp;
    const auto pairs = tokenizer_from_folder(folder_of("qwen2"), "qwen2", vocab);
    write_vocabulary(pairs, temp / "v.gguf");
    const GgufFile file(temp / "v.gguf");
    EXPECT_EQ(tokenizer_from_gguf(file, vocab).size(), pairs.size());
    expect_error(ErrorCode::incompatible, {"304", "1000", "v.gguf"},
                 [&] { tokenizer_from_gguf(file, 1000); });
}

} // namespace

} // namespace spool
