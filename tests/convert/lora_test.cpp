#include <gtest/gtest.h>

#include "convert/convert.h"
#include "convert/llama_probe.h"
#include "convert/lora.h"
#include "convert/model.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "formats/safetensors.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {

namespace {

using test::expect_error;
using test::fixture;
using test::LlamaProbe;
using test::TemporaryFolder;

std::filesystem::path data(const std::string& name) { return fixture("convert/data/" + name); }

void expect_same_tensors(const std::filesystem::path& left, const std::filesystem::path& right) {
    const SafetensorsFile a(left);
    const SafetensorsFile b(right);
    ASSERT_EQ(a.tensors().size(), b.tensors().size());
    for (const TensorView& tensor : a.tensors()) {
        const TensorView& other = b.at(tensor.name);
        EXPECT_EQ(other.dtype, tensor.dtype) << tensor.name;
        EXPECT_EQ(other.shape, tensor.shape) << tensor.name;
        EXPECT_TRUE(std::ranges::equal(other.data, tensor.data)) << tensor.name;
    }
}

/// The tiny Llama model and a copy of its adapter that may be changed.
class ConvertLora : public ::testing::Test {
  protected:
    ConvertLora() {
        hugging_face_to_gguf(data("llama"), temp_ / "base.gguf", {.type = GGML_TYPE_F32});
        base_.emplace(temp_ / "base.gguf");
        std::filesystem::copy(data("llama-adapter"), adapter());
    }

    std::filesystem::path adapter() const { return temp_ / "adapter"; }
    std::filesystem::path lora() const { return temp_ / "lora.gguf"; }

    void change_config(const std::string& field, const JsonValue& value) const {
        JsonValue config = read_json_file(data("llama-adapter") / "adapter_config.json").json();
        config[field] = value;
        write_text(adapter() / "adapter_config.json", config.dump());
    }

    void change_tensors(const std::function<void(std::vector<TensorView>&)>& change) const {
        const SafetensorsFile file(data("llama-adapter") / "adapter_model.safetensors");
        auto tensors = file.tensors();
        change(tensors);
        write_safetensors(adapter() / "adapter_model.safetensors", tensors);
    }

    void refuses(ErrorCode code, std::initializer_list<std::string_view> words) const {
        expect_error(code, words, [&] { peft_to_gguf(adapter(), *base_, lora()); });
    }

    TemporaryFolder temp_;
    std::optional<GgufFile> base_;
};

TEST_F(ConvertLora, AdaptedLlamaGivesTheLogitsOfMergedWeights) {
    peft_to_gguf(adapter(), *base_, lora(), GGML_TYPE_F32); // f16 factors would round the activations too
    LlamaProbe probe(temp_ / "base.gguf");
    ASSERT_TRUE(probe.takes_adapter(lora()));
    EXPECT_LT(test::logit_error(probe, data("llama") / "golden.safetensors", "logits_with_adapter"), 1e-3F);
}

TEST_F(ConvertLora, RoundTripIsBitEqual) {
    peft_to_gguf(adapter(), *base_, lora());
    gguf_to_peft(lora(), nullptr, temp_ / "back");
    expect_same_tensors(data("llama-adapter") / "adapter_model.safetensors",
                        temp_ / "back" / "adapter_model.safetensors");
    const auto config = read_json_file(temp_ / "back" / "adapter_config.json");
    EXPECT_EQ(config.u32("r"), 4U);
    EXPECT_EQ(config.u32("lora_alpha"), 12U);
    EXPECT_EQ(config.json().at("target_modules").size(), 7U);
    peft_to_gguf(temp_ / "back", *base_, temp_ / "again.gguf");
    EXPECT_EQ(GgufFile(temp_ / "again.gguf").tensors().size(), GgufFile(lora()).tensors().size());
}

TEST_F(ConvertLora, AdapterWithoutHeadCountsNeedsTheBase) {
    peft_to_gguf(adapter(), *base_, lora());
    const GgufFile full(lora());
    GgufWriter writer; // as llama.cpp's own converter writes it
    for (const GgufPair& pair : full.pairs()) {
        if (!pair.key.starts_with("spool.")) {
            writer.set(pair.key, pair.value);
        }
    }
    for (const GgufTensor& tensor : full.tensors()) {
        writer.add(tensor.name, tensor.type, tensor.ne, tensor.data);
    }
    writer.write(temp_ / "plain.gguf");
    expect_error(ErrorCode::invalid_argument, {"plain.gguf", "--base"},
                 [&] { gguf_to_peft(temp_ / "plain.gguf", nullptr, temp_ / "back"); });
    gguf_to_peft(temp_ / "plain.gguf", &*base_, temp_ / "back");
    expect_same_tensors(data("llama-adapter") / "adapter_model.safetensors",
                        temp_ / "back" / "adapter_model.safetensors");
}

TEST_F(ConvertLora, RefusesFieldsThatLoraGgufCannotExpress) {
    const std::vector<std::pair<std::string, JsonValue>> fields = {{"use_rslora", true},
                                                                   {"use_dora", true},
                                                                   {"use_qalora", true},
                                                                   {"lora_bias", true},
                                                                   {"bias", "all"},
                                                                   {"modules_to_save", {"lm_head"}},
                                                                   {"rank_pattern", {{"q_proj", 8}}},
                                                                   {"alpha_pattern", {{"q_proj", 8}}},
                                                                   {"fan_in_fan_out", true},
                                                                   {"layer_replication", {{0, 1}}},
                                                                   {"alora_invocation_tokens", {1, 2}},
                                                                   {"init_lora_weights", "pissa"},
                                                                   {"init_lora_weights", "pissa_niter_4"},
                                                                   {"init_lora_weights", "olora"},
                                                                   {"peft_type", "IA3"}};
    for (const auto& [field, value] : fields) {
        change_config(field, value);
        refuses(ErrorCode::unsupported, {"adapter_config.json", field});
    }
    change_config("lora_alpha", 0);
    refuses(ErrorCode::bad_file, {"lora_alpha"});
    change_config("init_lora_weights", "gaussian");
    peft_to_gguf(adapter(), *base_, lora());
}

TEST_F(ConvertLora, RefusesTensorsThatLoraGgufCannotExpressByName) {
    const std::vector<std::pair<std::string, std::string>> names = {
        {"base_model.model.model.embed_tokens.lora_embedding_A", "embeddings"},
        {"base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector.weight", "DoRA"},
        {"base_model.model.model.layers.0.self_attn.q_proj.lora_B.bias", "lora_bias"},
        {"base_model.model.lm_head.weight", "modules_to_save"},
        {"base_model.model.lm_head.lora_A.weight", "outside"},
        {"base_model.model.model.layers.0.self_attn.q_proj.lora_C.weight", "modules_to_save"}};
    for (const auto& [name, reason] : names) {
        change_tensors([&](auto& tensors) { tensors.front().name = name; });
        refuses(ErrorCode::unsupported, {name, reason});
    }
}

TEST_F(ConvertLora, ShapesAreCheckedAgainstTheBase) {
    change_config("r", 8);
    refuses(ErrorCode::incompatible, {"r = 8", "base.gguf"});
    change_config("r", 4);
    change_tensors([](auto& tensors) {
        for (TensorView& tensor : tensors) {
            if (const auto at = tensor.name.find("layers.1."); at != std::string::npos) {
                tensor.name[at + 7] = '7';
            }
        }
    });
    refuses(ErrorCode::incompatible, {"blk.7.", "base.gguf"});
    change_tensors([](auto& tensors) { std::swap(tensors.front().shape[0], tensors.front().shape[1]); });
    refuses(ErrorCode::incompatible, {"has shape"});
}

TEST_F(ConvertLora, HalfAPairIsNamed) {
    change_tensors([](auto& tensors) {
        std::erase_if(tensors, [](const TensorView& t) {
            return t.name.ends_with("layers.1.mlp.up_proj.lora_B.weight");
        });
    });
    refuses(ErrorCode::bad_file, {"blk.1.ffn_up.weight.lora_a", "lora_b", "missing"});
    EXPECT_FALSE(std::filesystem::exists(lora()));
}

TEST_F(ConvertLora, Qwen2RowsStayInOrder) {
    hugging_face_to_gguf(data("qwen2"), temp_ / "qwen2.gguf", {.type = GGML_TYPE_F32});
    const GgufFile base(temp_ / "qwen2.gguf");
    peft_to_gguf(adapter(), base, lora());
    const SafetensorsFile source(data("llama-adapter") / "adapter_model.safetensors");
    const GgufFile file(lora());
    EXPECT_TRUE(
        std::ranges::equal(file.find_tensor("blk.1.attn_q.weight.lora_b")->data,
                           source.at("base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight").data));
    LlamaProbe probe(temp_ / "qwen2.gguf");
    EXPECT_TRUE(probe.takes_adapter(lora()));
}

TEST_F(ConvertLora, AnotherArchitectureIsRefusedByName) {
    GgufWriter writer;
    writer.set("general.architecture", std::string("gemma"));
    writer.write(temp_ / "gemma.gguf");
    const GgufFile base(temp_ / "gemma.gguf");
    expect_error(ErrorCode::unsupported, {"gemma.gguf", "'gemma'"},
                 [&] { peft_to_gguf(adapter(), base, lora()); });
}

TEST(ConvertLoraUpstream, RoundTripsBitEqualAndLoadsIntoTheDefaultModel) {
    const auto model = test::default_model();
    const auto source = test::shared_data("bundle-smollm2/adapter_model.safetensors");
    if (!model || !source) {
        GTEST_SKIP() << "needs the default model and bundle-smollm2 (see tests/support/data.h)";
    }
    const TemporaryFolder temp;
    convert(*source, temp / "lora.gguf", {.base = model});
    LlamaProbe probe(*model);
    EXPECT_TRUE(probe.takes_adapter(temp / "lora.gguf"));
    convert(temp / "lora.gguf", temp / "back", {});
    expect_same_tensors(*source, temp / "back" / "adapter_model.safetensors");
}

} // namespace

} // namespace spool
