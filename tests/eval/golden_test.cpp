// The values an independent PyTorch program computed for the same bundle, model and token ids.
#include <cmath>

#include <gtest/gtest.h>

#include "convert/convert.h"
#include "eval/cross_entropy.h"
#include "support/model.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

class GoldenTest : public test::WithDefaultModel {
  protected:
    void SetUp() override {
        WithDefaultModel::SetUp();
        if (IsSkipped()) {
            return;
        }
        const auto records = test::shared_data("bundle-smollm2/golden.jsonl.gz");
        if (!records) {
            GTEST_SKIP() << "the golden records are absent (set SPOOL_SHARED_DATA)";
        }
        records_ = read_records(*records, model_->facts().vocab_size);
    }

    Bundle float_bundle() {
        const auto source = test::shared_data("bundle-smollm2");
        ConvertOptions options;
        options.base = model_->path();
        options.type = GGML_TYPE_F32;
        options.trained.rw = 48;
        options.trained.chunk = 48;
        convert(*source, folder_ / "bundle", options);
        return read_bundle(folder_ / "bundle");
    }

    static CrossEntropyResult evaluate(const Model& model, const Bundle& bundle,
                                       const std::vector<Record>& records, Layout refresh, ggml_type cache,
                                       std::vector<std::string> arms) {
        CrossEntropyOptions options;
        options.pool.threads = 2;
        options.pool.key_type = options.pool.value_type = cache;
        options.refresh = refresh;
        options.arms = std::move(arms);
        return evaluate_cross_entropy(model, &bundle, options, records);
    }

    test::TemporaryFolder folder_;
    std::vector<Record> records_;
};

TEST_F(GoldenTest, EachRecordIsWithinAHundredthOfANatInFloat32) {
    const Bundle bundle = float_bundle();
    ConvertOptions dequantize;
    dequantize.type = GGML_TYPE_F32;
    convert(model_->path(), folder_ / "f32.gguf", dequantize);
    const auto model = test::load_model(folder_ / "f32.gguf");
    // Every third record keeps both kinds and the test short; docs/benchmarks.md has all sixteen.
    std::vector<Record> records;
    for (size_t i = 0; i < records_.size(); i += 3) {
        records.push_back(records_[i]);
    }
    const auto rebuild =
        evaluate(*model, bundle, records, Layout::rebuild, GGML_TYPE_F32, {"full", "window", "soft_prompt"});
    const auto carry = evaluate(*model, bundle, records, Layout::carry, GGML_TYPE_F32, {"soft_prompt"});
    for (size_t i = 0; i < records.size(); ++i) {
        const Json& golden = records[i].source;
        EXPECT_NEAR(rebuild.records[i].at("full"), golden["ce_full"], 0.01) << records[i].id;
        EXPECT_NEAR(rebuild.records[i].at("window"), golden["ce_window"], 0.01) << records[i].id;
        EXPECT_NEAR(rebuild.records[i].at("soft_prompt"), golden["ce_memory_rebuild"], 0.01) << records[i].id;
        EXPECT_NEAR(carry.records[i].at("soft_prompt"), golden["ce_memory_carry"], 0.01) << records[i].id;
    }
}

TEST_F(GoldenTest, TheMeansOfTheQuantisedModelAndBundleAreWithinFiveHundredths) {
    const Bundle bundle = read_bundle(test::fixture("../models/smollm2-bundle"));
    const auto rebuild = evaluate(*model_, bundle, records_, Layout::rebuild, GGML_TYPE_F16,
                                  {"full", "window", "soft_prompt"});
    const auto carry = evaluate(*model_, bundle, records_, Layout::carry, GGML_TYPE_F16, {"soft_prompt"});
    const auto golden_mean = [&](const char* field) {
        double sum = 0;
        for (const Record& record : records_) {
            sum += record.source[field].get<double>();
        }
        return sum / static_cast<double>(records_.size());
    };
    EXPECT_NEAR(rebuild.arms.at("full").value, golden_mean("ce_full"), 0.05);
    EXPECT_NEAR(rebuild.arms.at("window").value, golden_mean("ce_window"), 0.05);
    EXPECT_NEAR(rebuild.arms.at("soft_prompt").value, golden_mean("ce_memory_rebuild"), 0.05);
    EXPECT_NEAR(carry.arms.at("soft_prompt").value, golden_mean("ce_memory_carry"), 0.05);
}

TEST_F(GoldenTest, AGarbledSoftPromptWouldBeSeen) {
    const Bundle bundle = read_bundle(test::fixture("../models/smollm2-bundle"));
    std::vector<Record> overfitted(records_.begin(), records_.begin() + 3);
    const auto result = evaluate(*model_, bundle, overfitted, Layout::rebuild, GGML_TYPE_F16,
                                 {"soft_prompt", "noise", "window"});
    EXPECT_LT(result.arms.at("soft_prompt").value + 0.2, result.arms.at("noise").value);
    EXPECT_LT(result.arms.at("soft_prompt").value + 0.2, result.arms.at("window").value);
}

} // namespace
} // namespace spool
