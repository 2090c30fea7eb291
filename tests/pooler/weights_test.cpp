#include <limits>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "formats/gguf.h"
#include "pooler/compare.h"
#include "pooler/generated.h"
#include "pooler/weights.h"

namespace spool::test {
namespace {

class PoolerFileTest : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / fmt::format("spool-pooler-{}", getpid());
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::filesystem::path file() const { return folder_ / "pooler.gguf"; }

    static PoolerFile sample() {
        return {
            .weights =
                generated_weights({.hidden = 64, .n_sp = 5, .heads = 4, .layers = 2, .ffn = 48}, 3.25F),
            .base = {.architecture = "llama", .name = "Some Model", .vocab_sha256 = "abc123"},
            .trained = {
                .rw = 512, .chunk = 64, .max_distant = 4096, .max_position = 8192, .layout = Layout::carry}};
    }

    /// Copies the file at file(), letting `edit` change pairs and tensors on the way; returns the message of
    /// the error that reading the copy throws.
    std::string error_after(const std::function<void(GgufPair&)>& edit_pair,
                            const std::function<void(GgufTensor&)>& edit_tensor = {},
                            const std::string& leave_out = "") const {
        write_pooler(file(), sample(), GGML_TYPE_F32);
        const GgufFile original(file());
        GgufWriter writer;
        for (GgufPair pair : original.pairs()) {
            if (edit_pair) {
                edit_pair(pair);
            }
            if (pair.key != leave_out) {
                writer.set(pair.key, pair.value);
            }
        }
        for (GgufTensor tensor : original.tensors()) {
            if (edit_tensor) {
                edit_tensor(tensor);
            }
            if (tensor.name != leave_out) {
                writer.add(tensor.name, tensor.type, tensor.ne, tensor.data);
            }
        }
        const std::filesystem::path copy = folder_ / "edited.gguf";
        writer.write(copy);
        try {
            read_pooler(copy);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file);
            const std::string message = error.what();
            EXPECT_TRUE(message.starts_with(copy.string())) << message;
            return message;
        }
        return "no error";
    }
    std::string error_with(const std::string& key, const GgufValue& value) const {
        return error_after([&](GgufPair& pair) {
            if (pair.key == key) {
                pair.value = value;
            }
        });
    }

    std::filesystem::path folder_;
};

void expect_part(const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(PoolerFileTest, f32_roundtrip_is_exact) {
    const PoolerFile written = sample();
    write_pooler(file(), written, GGML_TYPE_F32);
    const PoolerFile read = read_pooler(file());
    EXPECT_EQ(read.weights.shape, written.weights.shape);
    EXPECT_EQ(read.weights.out_scale, written.weights.out_scale);
    EXPECT_EQ(read.weights.tensors, written.weights.tensors);
    EXPECT_EQ(read.base, written.base);
    EXPECT_EQ(read.trained, written.trained);
}

TEST_F(PoolerFileTest, keys_are_those_of_the_format) {
    write_pooler(file(), sample(), GGML_TYPE_F32);
    const GgufFile gguf(file());
    EXPECT_EQ(gguf.string("general.architecture"), "spool-pooler");
    EXPECT_EQ(gguf.u32("spool.version"), 1U);
    EXPECT_EQ(gguf.u32("spool.pooler.hidden"), 64U);
    EXPECT_EQ(gguf.u32("spool.pooler.n_sp"), 5U);
    EXPECT_EQ(gguf.u32("spool.pooler.heads"), 4U);
    EXPECT_EQ(gguf.u32("spool.pooler.layers"), 2U);
    EXPECT_EQ(gguf.u32("spool.pooler.ffn"), 48U);
    EXPECT_EQ(gguf.f32("spool.pooler.out_scale"), 3.25F);
    EXPECT_EQ(gguf.string("spool.pooler.source"), "embedding");
    EXPECT_EQ(gguf.string("spool.base.architecture"), "llama");
    EXPECT_EQ(gguf.string("spool.base.name"), "Some Model");
    EXPECT_EQ(gguf.string("spool.base.vocab_sha256"), "abc123");
    EXPECT_EQ(gguf.u32("spool.trained.rw"), 512U);
    EXPECT_EQ(gguf.u32("spool.trained.chunk"), 64U);
    EXPECT_EQ(gguf.u32("spool.trained.max_distant"), 4096U);
    EXPECT_EQ(gguf.u32("spool.trained.max_position"), 8192U);
    EXPECT_EQ(gguf.string("spool.trained.layout"), "carry");
    const GgufTensor* in = gguf.find_tensor("blocks.1.ffn.2.weight");
    ASSERT_NE(in, nullptr);
    EXPECT_EQ(in->ne, (std::vector<int64_t>{48, 64}));
}

TEST_F(PoolerFileTest, q8_0_keeps_vectors_exact_and_falls_back_to_f16_for_odd_rows) {
    const PoolerFile written = sample();
    write_pooler(file(), written, GGML_TYPE_Q8_0);
    const GgufFile gguf(file());
    EXPECT_EQ(gguf.find_tensor("blocks.0.cross.in_proj_weight")->type, GGML_TYPE_Q8_0);
    EXPECT_EQ(gguf.find_tensor("blocks.0.ffn.2.weight")->type, GGML_TYPE_F16); // rows of 48
    EXPECT_EQ(gguf.find_tensor("query")->type, GGML_TYPE_F32);
    const PoolerFile read = read_pooler(file());
    EXPECT_EQ(read.weights.tensors.at("query"), written.weights.tensors.at("query"));
    EXPECT_EQ(read.weights.tensors.at("ln_out.weight"), written.weights.tensors.at("ln_out.weight"));
    const std::string matrix = "blocks.0.cross.in_proj_weight";
    const double loss = max_difference(read.weights.tensors.at(matrix), written.weights.tensors.at(matrix));
    EXPECT_GT(loss, 0.0);
    EXPECT_LT(loss, 0.0625 / 127.0);
}

TEST_F(PoolerFileTest, other_types_are_refused) {
    EXPECT_THROW(write_pooler(file(), sample(), GGML_TYPE_Q4_1), Error);
    EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(PoolerFileTest, unknown_base_and_training_are_left_out_and_read_as_unknown) {
    const PoolerFile bare{.weights = sample().weights, .base = {}, .trained = {}};
    write_pooler(file(), bare, GGML_TYPE_F16);
    EXPECT_EQ(GgufFile(file()).find("spool.base.name"), nullptr);
    EXPECT_EQ(GgufFile(file()).find("spool.trained.rw"), nullptr);
    EXPECT_EQ(read_pooler(file()).base, bare.base);
    EXPECT_EQ(read_pooler(file()).trained, bare.trained);
}

TEST_F(PoolerFileTest, a_missing_tensor_is_named) {
    expect_part(error_after({}, {}, "blocks.1.lnk.bias"), "the tensor 'blocks.1.lnk.bias' [64] is missing");
}

TEST_F(PoolerFileTest, a_missing_key_is_named) {
    expect_part(error_after({}, {}, "spool.pooler.heads"), "spool.pooler.heads");
    expect_part(error_after({}, {}, "spool.version"), "spool.version");
}

TEST_F(PoolerFileTest, an_unexpected_tensor_is_named) {
    expect_part(error_with("spool.pooler.layers", uint32_t{1}), "'blocks.1.");
}

TEST_F(PoolerFileTest, a_wrong_shape_is_named_with_found_and_expected) {
    const auto transpose = [](GgufTensor& tensor) {
        if (tensor.name == "blocks.0.ffn.0.weight") {
            tensor.ne = {48, 64};
        }
    };
    expect_part(error_after({}, transpose),
                "tensor 'blocks.0.ffn.0.weight' has shape [64, 48], expected [48, 64]");
}

TEST_F(PoolerFileTest, another_version_is_refused) {
    expect_part(error_with("spool.version", uint32_t{2}), "key 'spool.version' is 2, expected 1");
}

TEST_F(PoolerFileTest, another_architecture_source_or_layout_is_refused) {
    expect_part(error_with("general.architecture", std::string("llama")),
                "key 'general.architecture' is 'llama', expected 'spool-pooler'");
    expect_part(error_with("spool.pooler.source", std::string("hidden_state")),
                "key 'spool.pooler.source' is 'hidden_state', expected 'embedding'");
    expect_part(error_with("spool.trained.layout", std::string("sideways")),
                "key 'spool.trained.layout' is 'sideways', expected 'rebuild' or 'carry'");
}

TEST_F(PoolerFileTest, absurd_dimensions_are_refused_before_any_tensor_is_read) {
    expect_part(error_with("spool.pooler.hidden", uint32_t{0}), "hidden is 0, expected 1 to 65536");
    expect_part(error_with("spool.pooler.layers", uint32_t{4000000000U}), "layers is 4000000000");
    expect_part(error_with("spool.pooler.heads", uint32_t{7}), "7 heads do not divide its hidden width 64");
}

TEST_F(PoolerFileTest, values_that_are_not_finite_are_refused_on_reading_and_writing) {
    PoolerFile broken = sample();
    std::vector<float>& values = broken.weights.tensors.at("blocks.0.lnq2.bias");
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        values[3] = bad;
        EXPECT_THROW(write_pooler(file(), broken, GGML_TYPE_F32), Error);
        const auto poison = [&](GgufTensor& tensor) {
            if (tensor.name == "blocks.0.lnq2.bias") {
                tensor.data = std::as_bytes(std::span(values));
            }
        };
        expect_part(error_after({}, poison), "tensor 'blocks.0.lnq2.bias' holds");
    }
    expect_part(error_with("spool.pooler.out_scale", std::numeric_limits<float>::infinity()), "'out_scale'");
}

TEST_F(PoolerFileTest, a_file_that_is_absent_or_no_gguf_is_refused) {
    EXPECT_THROW(read_pooler(folder_ / "absent.gguf"), Error);
    write_text(file(), "not a GGUF file");
    EXPECT_THROW(read_pooler(file()), Error);
}

TEST(Layout, names_both_ways) {
    EXPECT_EQ(layout_from_string("rebuild"), Layout::rebuild);
    EXPECT_EQ(layout_from_string("carry"), Layout::carry);
    EXPECT_EQ(to_string(Layout::carry), "carry");
    EXPECT_THROW(layout_from_string("Carry"), Error);
}

TEST(PoolerTensors, reference_shape_has_75_6_million_parameters) {
    size_t total = 0;
    for (const auto& [name, sizes] :
         pooler_tensors({.hidden = 1536, .n_sp = 32, .heads = 8, .layers = 3, .ffn = 2048})) {
        size_t count = 1;
        for (const int64_t size : sizes) {
            count *= static_cast<size_t>(size);
        }
        total += count;
    }
    EXPECT_EQ(total, size_t{75634176});
}

} // namespace
} // namespace spool::test
