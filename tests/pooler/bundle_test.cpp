// A real pooler and the soft prompt and masses that an independent PyTorch program computed with it.
#include <array>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/json.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "pooler/compare.h"
#include "pooler/pooler.h"
#include "support/data.h"

namespace spool::test {
namespace {

std::string first_line(const std::filesystem::path& path) {
    const gzFile file = gzopen(path.c_str(), "rb");
    std::string line;
    std::array<char, 65536> buffer{};
    while (!line.ends_with('\n') && gzgets(file, buffer.data(), buffer.size()) != nullptr) {
        line += buffer.data();
    }
    gzclose(file);
    return line;
}

PoolerWeights upstream_weights(const std::filesystem::path& path) {
    const SafetensorsFile file(path);
    PoolerWeights weights;
    weights.shape = {.hidden = 576, .n_sp = 32, .heads = 8, .layers = 3, .ffn = 2048};
    weights.out_scale = to_float(file.at("out_scale")).front();
    for (const auto& [name, shape] : pooler_tensors(weights.shape)) {
        weights.tensors.emplace(name, to_float(file.at(name)));
    }
    return weights;
}

class PoolerBundle : public testing::Test {
  protected:
    void SetUp() override {
        const auto golden = shared_data("bundle-smollm2/golden.jsonl.gz");
        const auto weights = shared_data("bundle-smollm2/pooler.safetensors");
        const auto model = default_model();
        if (!golden || !weights || !model) {
            GTEST_SKIP() << "needs shared/data/bundle-smollm2 and the default model (make model)";
        }
        const Json record = Json::parse(first_line(*golden));
        for (const Json& vector : record.at("soft_prompt")) {
            for (const Json& value : vector) {
                soft_prompt_.push_back(value.get<float>());
            }
        }
        mass_ = record.at("mass").get<std::vector<float>>();
        weights_ = upstream_weights(*weights);

        const GgufFile file(*model);
        const GgufTensor* table = file.find_tensor("token_embd.weight");
        ASSERT_NE(table, nullptr);
        const size_t row_bytes = ggml_row_size(table->type, table->ne[0]);
        for (const Json& token : record.at("distant")) {
            const GgufTensor row{.name = "row",
                                 .type = table->type,
                                 .ne = {table->ne[0]},
                                 .data = table->data.subspan(token.get<size_t>() * row_bytes, row_bytes)};
            const std::vector<float> values = to_float(row);
            rows_.insert(rows_.end(), values.begin(), values.end());
        }
    }

    PoolResult pool(PoolerWeights weights) const {
        const size_t hidden = weights.shape.hidden;
        return Pooler(std::move(weights)).pool(mass_.size(), [&](size_t first, size_t count, float* out) {
            std::copy_n(rows_.data() + first * hidden, count * hidden, out);
        });
    }

    /// The result after the weights went through a file of this type.
    PoolResult pool_stored(ggml_type type) const {
        const auto path =
            std::filesystem::temp_directory_path() / fmt::format("spool-bundle-{}.gguf", getpid());
        write_pooler(path, {.weights = weights_, .base = {}, .trained = {}}, type);
        PoolerFile file = read_pooler(path);
        std::filesystem::remove(path);
        return pool(std::move(file.weights));
    }

    PoolerWeights weights_;
    std::vector<float> rows_;
    std::vector<float> soft_prompt_;
    std::vector<float> mass_;
};

TEST_F(PoolerBundle, golden_soft_prompt_and_mass) {
    const PoolResult result = pool(weights_);
    ASSERT_EQ(result.soft_prompt.size(), soft_prompt_.size());
    RecordProperty("soft_prompt_max_difference",
                   fmt::format("{:.3g}", max_difference(result.soft_prompt, soft_prompt_)));
    RecordProperty("mass_max_relative", fmt::format("{:.3g}", max_relative_difference(result.mass, mass_)));
    EXPECT_LE(max_difference(result.soft_prompt, soft_prompt_), 1e-6);
    EXPECT_LE(max_relative_difference(result.mass, mass_), 1e-5);
    EXPECT_GT(correlation(result.mass, mass_), 1.0 - 5e-7);
    EXPECT_LE(top_half_disagreement(result.mass, mass_), 1e-6);
}

TEST_F(PoolerBundle, f16_file_loses_nothing_of_weights_that_were_f16) {
    const PoolResult stored = pool_stored(GGML_TYPE_F16);
    const PoolResult direct = pool(weights_);
    EXPECT_EQ(stored.soft_prompt, direct.soft_prompt);
    EXPECT_EQ(stored.mass, direct.mass);
}

TEST_F(PoolerBundle, q8_0_file_stays_close) {
    const PoolResult stored = pool_stored(GGML_TYPE_Q8_0);
    const double difference = max_difference(stored.soft_prompt, soft_prompt_);
    const double similarity = cosine(stored.soft_prompt, soft_prompt_);
    RecordProperty("soft_prompt_max_difference", fmt::format("{:.3g}", difference));
    RecordProperty("soft_prompt_cosine", fmt::format("{:.7f}", similarity));
    RecordProperty("mass_max_relative", fmt::format("{:.3g}", max_relative_difference(stored.mass, mass_)));
    EXPECT_GT(similarity, 0.9999);
    EXPECT_GT(correlation(stored.mass, mass_), 0.999);
}

} // namespace
} // namespace spool::test
