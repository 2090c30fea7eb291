// The values that an independent PyTorch program computed for a real model, pooler and adapter.
#include <gtest/gtest.h>

#include "corpus/records.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "train/export.h"
#include "train/reader.h"

namespace spool::train {
namespace {

/// Mean cross-entropy of the predictions of raw tokens [from, end).
double mean_from(const Reader& reader, const ForwardPass& pass, const TraceText& trace, size_t from) {
    const at::NoGradGuard no_grad;
    const auto count = static_cast<int64_t>(pass.predictions().size());
    const Tensor nll =
        reader.losses(pass, reader.hidden(pass, std::span(&trace, 1)), at::ones({count}, at::kFloat)).nll;
    double sum = 0;
    size_t counted = 0;
    for (size_t i = 0; i < pass.predictions().size(); ++i) {
        if (pass.predictions()[i].token >= from) {
            sum += nll[static_cast<int64_t>(i)].item<double>();
            ++counted;
        }
    }
    return sum / static_cast<double>(counted);
}

TEST(GoldenTest, EveryArmIsWithinAHundredthOfANat) {
    const auto model = test::default_model();
    const auto upstream = test::shared_data("bundle-smollm2");
    if (!model || !upstream) {
        GTEST_SKIP() << "needs the default model (make model) and the reference bundle (SPOOL_SHARED_DATA)";
    }
    const test::TemporaryFolder folder;
    const auto converted =
        test::run_spool({"convert", upstream->string(), (folder / "bundle").string(), "--base",
                         model->string(), "--type", "f32", "--rw", "48", "--chunk", "48"});
    ASSERT_EQ(converted.exit_code, 0) << converted.err;

    Settings settings;
    settings.model = *model;
    settings.from = (folder / "bundle");
    const GgufFile file(*model);
    Reader reader = make_reader(settings, file);
    const auto records =
        read_records(*upstream / "golden.jsonl.gz", static_cast<int32_t>(reader.model().shape.vocab));
    for (size_t i = 0; i < records.size(); i += 5) { // both kinds, and a short test
        const Record& record = records[i];
        std::vector<Token> tokens = record.prompt;
        for (const auto* part : {&record.distant, &record.recent, &record.target}) {
            tokens.insert(tokens.end(), part->begin(), part->end());
        }
        const TraceText trace{.tokens = tokens, .pinned = record.prompt.size()};
        const size_t distant = record.distant.size();
        const size_t from = distant + record.recent.size();
        const size_t end = trace.raw().size();
        MemorySettings memory;
        memory.strategy = StrategyKind::soft_prompt;
        memory.refresh = Layout::carry;
        memory.window = memory.chunk = static_cast<uint32_t>(record.recent.size());
        PlannedCompaction last{.raw_length = from, .window_start = distant, .kept = {}};
        for (uint32_t t = 0; t < distant; ++t) {
            last.kept.push_back(t);
        }
        const auto arm = [&](const char* field, auto&& add) {
            ForwardPass pass(reader.pooler().shape().n_sp);
            add(pass);
            pass.finish();
            EXPECT_NEAR(mean_from(reader, pass, trace, from), record.source.at(field).get<double>(), 0.01)
                << record.id << " " << field;
        };
        arm("ce_full", [&](ForwardPass& pass) { pass.add_stretch(trace, 0, end, from); });
        arm("ce_window", [&](ForwardPass& pass) { pass.add_stretch(trace, distant, end, from); });
        arm("ce_memory_rebuild", [&](ForwardPass& pass) { pass.add_rebuild(trace, {last}); });
        arm("ce_memory_carry", [&](ForwardPass& pass) {
            pass.add_carry(trace, memory, plan_compactions(end, memory, 32, reader.mass_of(trace)));
        });
    }
}

} // namespace
} // namespace spool::train
