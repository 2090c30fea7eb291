#include <gtest/gtest.h>

#include "convert/llama_probe.h"
#include "convert/model.h"
#include "convert/rope_rows.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "formats/gguf.h"
#include "formats/mlx.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {

namespace {

using test::expect_error;
using test::fixture;
using test::LlamaProbe;
using test::TemporaryFolder;

constexpr float parity = 1e-3F;

std::filesystem::path folder(const std::string& name) { return fixture("convert/data/" + name); }

/// A copy of a model folder, to be damaged.
std::filesystem::path copy_of(const std::string& name, const TemporaryFolder& temp) {
    const auto path = temp / name;
    std::filesystem::copy(folder(name), path, std::filesystem::copy_options::recursive);
    return path;
}

void change_config(const std::filesystem::path& path, const std::function<void(JsonValue&)>& change) {
    JsonValue config = read_json_file(path / "config.json").json();
    change(config);
    write_text(path / "config.json", config.dump());
}

TEST(ConvertModel, LlamaFolderInShardsGivesTheLogitsOfTransformers) {
    const TemporaryFolder temp;
    const auto report = hugging_face_to_gguf(folder("llama"), temp / "m.gguf", {.type = GGML_TYPE_F32});
    EXPECT_EQ(report.tensors, 2U + 2 * 9);
    LlamaProbe probe(temp / "m.gguf");
    EXPECT_LT(test::logit_error(probe, folder("llama") / "golden.safetensors"), parity);
}

TEST(ConvertModel, Qwen2FolderWithBiasesGivesTheLogitsOfTransformers) {
    const TemporaryFolder temp;
    hugging_face_to_gguf(folder("qwen2"), temp / "m.gguf", {.type = GGML_TYPE_F32});
    LlamaProbe probe(temp / "m.gguf");
    EXPECT_LT(test::logit_error(probe, folder("qwen2") / "golden.safetensors"), parity);
}

TEST(ConvertModel, SmallerTypesStayCloseAndAreSmaller) {
    const TemporaryFolder temp;
    size_t last = SIZE_MAX;
    // Logits have a standard deviation of 1.5; ggml rounds the activations to the weights' type as well.
    for (const auto& [type, tolerance] :
         {std::pair{GGML_TYPE_BF16, 0.15F}, std::pair{GGML_TYPE_Q8_0, 0.5F}}) {
        hugging_face_to_gguf(folder("llama"), temp / "m.gguf", {.type = type});
        LlamaProbe probe(temp / "m.gguf");
        EXPECT_LT(test::logit_error(probe, folder("llama") / "golden.safetensors"), tolerance)
            << ggml_type_name(type);
        EXPECT_LT(std::filesystem::file_size(temp / "m.gguf"), last);
        last = std::filesystem::file_size(temp / "m.gguf");
    }
}

TEST(ConvertModel, TheFoldersOwnTypeIsTheDefault) {
    const TemporaryFolder temp;
    hugging_face_to_gguf(folder("llama"), temp / "m.gguf", {});
    const GgufFile file(temp / "m.gguf");
    EXPECT_EQ(file.find_tensor("blk.0.attn_q.weight")->type, GGML_TYPE_BF16);
    EXPECT_EQ(file.find_tensor("blk.0.attn_norm.weight")->type, GGML_TYPE_F32);
    EXPECT_EQ(file.u32("general.file_type"), 32U);
    EXPECT_EQ(file.string("general.name"), "llama");
}

TEST(ConvertModel, MlxFolderMovesExactScalesWithoutLossAndReportsTheRest) {
    const TemporaryFolder temp;
    hugging_face_to_gguf(folder("llama"), temp / "llama.gguf", {.type = GGML_TYPE_F32});
    const auto report =
        hugging_face_to_gguf(folder("llama-mlx"), temp / "m.gguf", {.tokenizer_from = temp / "llama.gguf"});
    EXPECT_EQ(report.mlx_exact, 7U);
    EXPECT_EQ(report.mlx_inexact, 1U);

    const GgufFile file(temp / "m.gguf");
    EXPECT_EQ(file.find_tensor("blk.0.ffn_down.weight")->type, GGML_TYPE_Q8_0);
    const SafetensorsFile source(folder("llama-mlx") / "model.safetensors");
    const auto bit_exact = [&](const char* name, const char* module, uint32_t heads) {
        const GgufTensor& tensor = *file.find_tensor(name);
        EXPECT_EQ(tensor.type, GGML_TYPE_Q4_1) << name;
        const auto found = to_float(tensor);
        const auto matrix = find_mlx_matrix(source, module);
        const auto expected = dequantize(*matrix);
        const auto order = heads == 0 ? std::vector<int64_t>{} : rows_from_hugging_face(matrix->rows, heads);
        const auto cols = static_cast<size_t>(matrix->cols);
        for (size_t row = 0; row < static_cast<size_t>(matrix->rows); ++row) {
            const size_t from = order.empty() ? row : static_cast<size_t>(order[row]);
            ASSERT_EQ(std::memcmp(&found[row * cols], &expected[from * cols], cols * sizeof(float)), 0)
                << name << " row " << row;
        }
    };
    bit_exact("token_embd.weight", "model.embed_tokens", 0);
    bit_exact("blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj", 4);
    bit_exact("blk.0.attn_k.weight", "model.layers.0.self_attn.k_proj", 2);
    bit_exact("blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj", 0);
}

TEST(ConvertModel, MlxFolderInFloat32GivesTheLogitsOfItsDequantisedWeights) {
    const TemporaryFolder temp;
    hugging_face_to_gguf(folder("llama"), temp / "llama.gguf", {.type = GGML_TYPE_F32});
    hugging_face_to_gguf(folder("llama-mlx"), temp / "m.gguf",
                         {.type = GGML_TYPE_F32, .tokenizer_from = temp / "llama.gguf"});
    LlamaProbe probe(temp / "m.gguf");
    EXPECT_LT(test::logit_error(probe, folder("llama-mlx") / "golden.safetensors"), parity);
}

TEST(ConvertModel, GgufDequantisesToFloat32ValueForValue) {
    const TemporaryFolder temp;
    hugging_face_to_gguf(folder("llama"), temp / "q.gguf", {.type = GGML_TYPE_Q8_0});
    gguf_to_gguf(temp / "q.gguf", temp / "f.gguf", GGML_TYPE_F32);
    const GgufFile quantised(temp / "q.gguf");
    const GgufFile floats(temp / "f.gguf");
    EXPECT_EQ(floats.u32("general.file_type"), 0U);
    EXPECT_EQ(floats.pairs().size(), quantised.pairs().size());
    ASSERT_EQ(floats.tensors().size(), quantised.tensors().size());
    for (const GgufTensor& tensor : quantised.tensors()) {
        const GgufTensor* found = floats.find_tensor(tensor.name);
        ASSERT_NE(found, nullptr);
        EXPECT_EQ(found->type, GGML_TYPE_F32);
        EXPECT_EQ(to_float(*found), to_float(tensor)) << tensor.name;
    }
    LlamaProbe probe(temp / "f.gguf");
    EXPECT_EQ(probe.vocabulary(), 304U);
}

TEST(ConvertModel, TheDefaultModelDequantises) {
    const auto model = test::default_model();
    if (!model) {
        GTEST_SKIP() << "the default model is not there; run make model";
    }
    const TemporaryFolder temp;
    gguf_to_gguf(*model, temp / "f.gguf", GGML_TYPE_F32);
    const GgufFile original(*model);
    const GgufFile floats(temp / "f.gguf");
    const std::string name = "blk.29.attn_k.weight";
    EXPECT_EQ(to_float(*floats.find_tensor(name)), to_float(*original.find_tensor(name)));
}

TEST(ConvertModel, RefusesByNameWhatItWouldGetWrong) {
    const TemporaryFolder temp;
    const auto path = copy_of("llama", temp);
    const auto refuses = [&](std::string_view field, const JsonValue& value) {
        change_config(path, [&](JsonValue& config) { config[std::string(field)] = value; });
        expect_error(ErrorCode::unsupported, {"config.json", field},
                     [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
        std::filesystem::copy_file(folder("llama") / "config.json", path / "config.json",
                                   std::filesystem::copy_options::overwrite_existing);
    };
    refuses("architectures", {"MistralForCausalLM"});
    refuses("hidden_act", "gelu");
    refuses("mlp_bias", true);
    refuses("use_sliding_window", true);
    refuses("sliding_window", 4096);
    refuses("layer_types", {"full_attention", "sliding_attention"});
    refuses("quantization_config", {{"quant_method", "gptq"}});
    refuses("partial_rotary_factor", 0.5);
    refuses("rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}});
    refuses("quantization", {{"group_size", 64}, {"bits", 8}});
    refuses("quantization", {{"group_size", 64}, {"bits", 4}, {"mode", "mxfp4"}});
    EXPECT_FALSE(std::filesystem::exists(temp / "m.gguf"));
}

TEST(ConvertModel, ConfigThatContradictsTheWeightsIsNamedWithBoth) {
    const TemporaryFolder temp;
    const auto path = copy_of("llama", temp);
    change_config(path, [](JsonValue& config) { config["intermediate_size"] = 96; });
    expect_error(ErrorCode::bad_file, {"mlp.gate_proj.weight", "[64, 32]", "[96, 32]"},
                 [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
    change_config(path, [](JsonValue& config) {
        config["intermediate_size"] = 64;
        config["num_hidden_layers"] = 1;
    });
    expect_error(ErrorCode::unsupported, {"model.layers.1", "no place"},
                 [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
    change_config(path, [](JsonValue& config) { config["num_hidden_layers"] = 3; });
    expect_error(ErrorCode::bad_file, {"model.layers.2", "missing"},
                 [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
}

TEST(ConvertModel, HostileConfigsGiveErrors) {
    const TemporaryFolder temp;
    const auto path = copy_of("llama", temp);
    const std::vector<std::pair<std::string, JsonValue>> fields = {{"hidden_size", 0},
                                                                   {"hidden_size", -32},
                                                                   {"hidden_size", 1e30},
                                                                   {"hidden_size", "32"},
                                                                   {"num_attention_heads", 0},
                                                                   {"num_attention_heads", 3},
                                                                   {"num_hidden_layers", 4e9},
                                                                   {"vocab_size", 4294967295U},
                                                                   {"architectures", "LlamaForCausalLM"},
                                                                   {"rope_scaling", {1, 2, 3}},
                                                                   {"head_dim", 7},
                                                                   {"rms_norm_eps", nullptr}};
    for (const auto& [field, value] : fields) {
        change_config(path, [&](JsonValue& config) { config[field] = value; });
        expect_error(ErrorCode::bad_file, {path.string()},
                     [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
        std::filesystem::copy_file(folder("llama") / "config.json", path / "config.json",
                                   std::filesystem::copy_options::overwrite_existing);
    }
    write_text(path / "config.json", R"({"architectures": ["LlamaFor)");
    expect_error(ErrorCode::bad_file, {"config.json", "byte 29"},
                 [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
}

TEST(ConvertModel, ShardIndexCannotLeadOutOfTheFolder) {
    const TemporaryFolder temp;
    const auto path = copy_of("llama", temp);
    const auto index = path / "model.safetensors.index.json";
    JsonValue json = read_json_file(index).json();
    json["weight_map"]["model.norm.weight"] = "../elsewhere.safetensors";
    write_text(index, json.dump());
    expect_error(ErrorCode::bad_file, {"model.norm.weight", "../elsewhere.safetensors"},
                 [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
    json["weight_map"]["model.norm.weight"] = "model-00003-of-00003.safetensors";
    write_text(index, json.dump());
    expect_error(ErrorCode::not_found, {"model-00003-of-00003.safetensors"},
                 [&] { hugging_face_to_gguf(path, temp / "m.gguf", {}); });
}

TEST(RopeRows, ReorderingAndBackIsTheIdentity) {
    const auto forth = rows_from_hugging_face(24, 3);
    const auto back = rows_to_hugging_face(24, 3);
    EXPECT_EQ(forth[0], 0);
    EXPECT_EQ(forth[1], 4); // the first pair of a head of 8: rows 0 and 4
    for (size_t row = 0; row < forth.size(); ++row) {
        EXPECT_EQ(back[static_cast<size_t>(forth[row])], static_cast<int64_t>(row));
    }
}

} // namespace

} // namespace spool
