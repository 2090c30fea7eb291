#include <gtest/gtest.h>

#include "convert/llama_probe.h"
#include "convert/model.h"
#include "core/file.h"
#include "core/json_file.h"
#include "formats/gguf.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {

namespace {

using test::expect_error;
using test::fixture;
using test::LlamaProbe;
using test::TemporaryFolder;

std::filesystem::path folder(const std::string& name) { return fixture("convert/data/" + name); }

std::filesystem::path copy_of(const std::string& name, const TemporaryFolder& temp) {
    const auto path = temp / name;
    std::filesystem::remove_all(path);
    std::filesystem::copy(folder(name), path, std::filesystem::copy_options::recursive);
    return path;
}

void change(const std::filesystem::path& path, const std::function<void(JsonValue&)>& edit) {
    JsonValue json = read_json_file(path).json();
    edit(json);
    write_text(path, json.dump());
}

struct Golden {
    std::string text;
    std::vector<llama_token> ids;
    std::vector<float> vector;
};

std::vector<Golden> goldens(const std::string& name) {
    std::vector<Golden> all;
    for (const JsonValue& json : JsonValue::parse(read_text(folder(name) / "golden.json"))) {
        all.push_back({json.at("text"), json.at("ids"), json.at("vector")});
    }
    return all;
}

double cosine(const std::vector<float>& left, const std::vector<float>& right) {
    EXPECT_EQ(left.size(), right.size());
    return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

class ConvertBertFolder : public testing::TestWithParam<const char*> {};

TEST_P(ConvertBertFolder, GivesTheIdsAndVectorsOfTransformers) {
    const TemporaryFolder temp;
    hugging_face_to_gguf(folder(GetParam()), temp / "m.gguf", {.type = GGML_TYPE_F32});
    LlamaProbe probe(temp / "m.gguf");
    for (const Golden& golden : goldens(GetParam())) {
        EXPECT_EQ(probe.encode(golden.text, true), golden.ids) << golden.text;
        EXPECT_GT(cosine(probe.embedding(golden.ids), golden.vector), 1 - 1e-4) << golden.text;
    }
}

TEST_P(ConvertBertFolder, SmallerTypesStayClose) {
    const TemporaryFolder temp;
    for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0}) {
        hugging_face_to_gguf(folder(GetParam()), temp / "m.gguf", {.type = type});
        LlamaProbe probe(temp / "m.gguf");
        for (const Golden& golden : goldens(GetParam())) {
            EXPECT_GT(cosine(probe.embedding(golden.ids), golden.vector), 1 - 1e-2) << golden.text;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Folders, ConvertBertFolder, testing::Values("bert", "bert-masked"),
                         [](const auto& kind) {
                             return std::string(kind.param) == "bert" ? "lowercase_mean" : "cased_cls_masked";
                         });

TEST(ConvertBert, KeysSayHowToPoolAndWhereToCut) {
    const TemporaryFolder temp;
    const auto report = hugging_face_to_gguf(folder("bert"), temp / "m.gguf", {});
    EXPECT_EQ(report.tensors, 5U + 2 * 16);
    const GgufFile mean(temp / "m.gguf");
    EXPECT_EQ(mean.string("general.architecture"), "bert");
    EXPECT_EQ(mean.u32("bert.pooling_type"), static_cast<uint32_t>(LLAMA_POOLING_TYPE_MEAN));
    EXPECT_EQ(mean.u32("bert.context_length"), 64U);
    EXPECT_EQ(mean.u32("spool.embedder.max_tokens"), 48U);
    EXPECT_EQ(mean.u32("tokenizer.ggml.token_type_count"), 2U);
    EXPECT_EQ(mean.find("spool.embedder.query_prefix"), nullptr);
    hugging_face_to_gguf(folder("bert-masked"), temp / "c.gguf", {});
    const GgufFile cls(temp / "c.gguf");
    EXPECT_EQ(cls.u32("bert.pooling_type"), static_cast<uint32_t>(LLAMA_POOLING_TYPE_CLS));
    EXPECT_EQ(cls.string("spool.embedder.query_prefix"), "search: ");
}

TEST(ConvertBert, MatricesBecomeF16AndTheRestStaysF32) {
    const TemporaryFolder temp;
    hugging_face_to_gguf(folder("bert"), temp / "m.gguf", {});
    const GgufFile file(temp / "m.gguf");
    EXPECT_EQ(file.u32("general.file_type"), 1U);
    for (const auto* name : {"token_embd.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight"}) {
        EXPECT_EQ(file.find_tensor(name)->type, GGML_TYPE_F16) << name;
    }
    for (const auto* name : {"position_embd.weight", "token_types.weight", "token_embd_norm.weight",
                             "blk.0.attn_q.bias", "blk.1.layer_output_norm.bias"}) {
        EXPECT_EQ(file.find_tensor(name)->type, GGML_TYPE_F32) << name;
    }
}

TEST(ConvertBert, AFolderWithoutSettingsOfSentenceTransformersPoolsByMean) {
    const TemporaryFolder temp;
    const auto path = copy_of("bert", temp);
    std::filesystem::remove(path / "modules.json");
    std::filesystem::remove(path / "sentence_bert_config.json");
    std::filesystem::remove_all(path / "1_Pooling");
    hugging_face_to_gguf(path, temp / "m.gguf", {});
    const GgufFile file(temp / "m.gguf");
    EXPECT_EQ(file.u32("bert.pooling_type"), static_cast<uint32_t>(LLAMA_POOLING_TYPE_MEAN));
    EXPECT_EQ(file.u32("spool.embedder.max_tokens"), 64U);
}

TEST(ConvertBert, RefusesByNameWhatItWouldGetWrong) {
    const TemporaryFolder temp;
    const auto refuses = [&](const char* file, const char* named, const std::function<void(JsonValue&)>& edit,
                             ErrorCode code = ErrorCode::unsupported) {
        const auto path = copy_of("bert", temp);
        change(path / file, edit);
        expect_error(code, {std::filesystem::path(file).filename().string(), named},
                     [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
    };
    refuses("config.json", "hidden_act", [](JsonValue& json) { json["hidden_act"] = "relu"; });
    refuses("config.json", "position_embedding_type",
            [](JsonValue& json) { json["position_embedding_type"] = "relative_key"; });
    refuses("config.json", "is_decoder", [](JsonValue& json) { json["is_decoder"] = true; });
    refuses(
        "config.json", "num_attention_heads", [](JsonValue& json) { json["num_attention_heads"] = 3; },
        ErrorCode::bad_file);
    refuses("1_Pooling/config.json", "mean, cls",
            [](JsonValue& json) { json["pooling_mode_max_tokens"] = true; });
    refuses("tokenizer.json", "WordPiece", [](JsonValue& json) { json["model"]["type"] = "Unigram"; });
    refuses("tokenizer.json", "normalizer", [](JsonValue& json) { json["normalizer"] = {{"type", "NFC"}}; });
    refuses("tokenizer.json", "pre_tokenizer", [](JsonValue& json) { json["pre_tokenizer"] = nullptr; });
    refuses("tokenizer.json", "post_processor",
            [](JsonValue& json) { json["post_processor"]["single"].erase(0); });
    const auto path = copy_of("bert", temp);
    write_text(path / "modules.json",
               R"([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])");
    expect_error(ErrorCode::unsupported, {"modules.json", "Dense"},
                 [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
    EXPECT_FALSE(std::filesystem::exists(temp / "m.gguf"));
}

TEST(ConvertBert, LayersThatConfigDoesNotCountAreNamed) {
    const TemporaryFolder temp;
    const auto path = copy_of("bert", temp);
    change(path / "config.json", [](JsonValue& json) { json["num_hidden_layers"] = 1; });
    expect_error(ErrorCode::unsupported, {"encoder.layer.1", "no place"},
                 [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
    change(path / "config.json", [](JsonValue& json) { json["num_hidden_layers"] = 3; });
    expect_error(ErrorCode::bad_file, {"encoder.layer.2", "missing"},
                 [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
}

} // namespace

} // namespace spool
