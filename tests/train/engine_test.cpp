// Trainer and engine read a text alike: the same tokens kept at every compaction, the same cross-entropy of
// every token, from a bundle and a merged model that the trainer wrote.
#include <cmath>

#include <gtest/gtest.h>

#include "context/session.h"
#include "core/random.h"
#include "support/small_model.h"
#include "train/export.h"
#include "train/reader.h"

namespace spool::train {
namespace {

constexpr uint32_t pinned = 5;

double cross_entropy_of(std::span<const float> logits, Token target) {
    double largest = logits[0];
    for (const float logit : logits) {
        largest = std::max(largest, double{logit});
    }
    double sum = 0;
    for (const float logit : logits) {
        sum += std::exp(double{logit} - largest);
    }
    return largest + std::log(sum) - double{logits[static_cast<size_t>(target)]};
}

enum class Kind { carry, rebuild, slots, few_slots };

class EngineTest : public ::testing::TestWithParam<Kind> {
  protected:
    void SetUp() override {
        path_ = test::write_small_model(folder_);
        settings_.model = path_;
        settings_.layout = GetParam() == Kind::rebuild ? Layout::rebuild : Layout::carry;
        settings_.memory = slots() ? MemoryKind::slots : MemoryKind::embedding;
        settings_.slots = 3;
        // Few: the oldest leave while tokens that stand before them are still in the window.
        settings_.max_slots = GetParam() == Kind::few_slots ? 3 : 256;
        settings_.n_sp = 4;
        settings_.pooler_heads = 4;
        settings_.pooler_layers = 2;
        settings_.pooler_ffn = 48;
        settings_.rank = 4;
        settings_.chunk = 16;
        settings_.window_min = settings_.window_max = 24;
        settings_.max_distant = 40; // far below the text's length: tokens are evicted at most compactions
        settings_.device = "cpu";
        Random random(11);
        for (int i = 0; i < 300; ++i) {
            tokens_.push_back(static_cast<Token>(random.below(256)));
        }
    }

    static bool slots() { return GetParam() == Kind::slots || GetParam() == Kind::few_slots; }

    /// Fresh adapters change nothing; these do.
    static void shake_adapters(Reader& reader) {
        const at::NoGradGuard no_grad;
        Random random(12);
        for (auto& [name, tensor] : adapter_parameters(reader.model())) {
            for (float& value :
                 std::span(tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel()))) {
                value += static_cast<float>(random.normal() * 0.05);
            }
        }
    }

    MemorySettings memory() const {
        MemorySettings memory;
        memory.strategy = slots() ? StrategyKind::slots : StrategyKind::soft_prompt;
        memory.max_slots = settings_.max_slots;
        memory.refresh = settings_.layout;
        memory.window = settings_.window_max;
        memory.chunk = settings_.chunk;
        memory.max_distant = settings_.max_distant;
        memory.pin = pinned;
        return memory;
    }

    test::TemporaryFolder folder_;
    std::filesystem::path path_;
    Settings settings_;
    std::vector<Token> tokens_;
};

TEST_P(EngineTest, SameTokensKeptAndSameLosses) {
    const at::NoGradGuard no_grad;
    const GgufFile file(path_);
    Reader reader = make_reader(settings_, file);
    shake_adapters(reader);
    write_bundle(reader, settings_, file, folder_ / "bundle",
                 {.pooler = GGML_TYPE_F32, .adapter = GGML_TYPE_F32, .max_position = 512, .recovered = {}});

    const TraceText text{.tokens = tokens_, .pinned = pinned};
    const auto compactions =
        plan_compactions(text.raw().size(), memory(), reader.vectors(), reader.mass_of(text));
    ForwardPass pass(reader.vectors());
    if (slots()) {
        pass.add_slots(text, memory(), compactions);
    } else if (GetParam() == Kind::carry) {
        pass.add_carry(text, memory(), compactions);
    } else {
        pass.add_rebuild(text, compactions);
    }
    pass.finish();
    const auto count = std::ssize(pass.predictions());
    const Tensor nll =
        reader.losses(pass, reader.hidden(pass, std::span(&text, 1)), at::ones({count}, at::kFloat)).nll;
    std::vector<double> trainer(text.raw().size());
    for (size_t i = 0; i < pass.predictions().size(); ++i) {
        trainer[pass.predictions()[i].token] = nll[static_cast<int64_t>(i)].item<double>();
    }

    const auto model = test::load_model(path_);
    const Bundle bundle = read_bundle(folder_ / "bundle");
    PoolOptions options;
    options.memory = memory();
    options.threads = 1;
    options.key_type = options.value_type = GGML_TYPE_F32;
    SessionPool pool(*model, &bundle, options);
    const auto session = pool.open();
    std::vector<std::vector<uint32_t>> kept;
    session->on_compaction = [&](const Compaction&) {
        kept.emplace_back();
        for (const uint32_t index : session->transcript().distant) {
            kept.back().push_back(index - uint32_t{pinned});
        }
    };
    session->read(std::span(tokens_).first(pinned));
    double largest = 0;
    for (size_t t = 0; t < text.raw().size(); ++t) {
        const Token next = text.raw()[t];
        largest = std::max(largest, std::abs(cross_entropy_of(session->logits(), next) - trainer[t]));
        session->read(std::span(&next, 1));
    }
    EXPECT_LT(largest, 1e-3);
    ASSERT_GE(kept.size(), compactions.size());
    ASSERT_GT(compactions.size(), 8U);
    EXPECT_EQ(compactions.back().kept.size(), slots() ? 0 : settings_.max_distant);
    for (size_t k = 0; k < compactions.size(); ++k) {
        EXPECT_EQ(kept[k], compactions[k].kept) << "compaction " << k;
    }
}

TEST_P(EngineTest, MergedModelIsTheAdaptedOne) {
    const at::NoGradGuard no_grad;
    const GgufFile file(path_);
    Reader reader = make_reader(settings_, file);
    shake_adapters(reader);
    write_model(reader, file, folder_ / "merged.gguf", GGML_TYPE_F32);

    const auto model = test::load_model(folder_ / "merged.gguf");
    PoolOptions options;
    options.memory.strategy = StrategyKind::full;
    options.memory.full_length = 512;
    options.threads = 1;
    options.key_type = options.value_type = GGML_TYPE_F32;
    SessionPool pool(*model, nullptr, options);
    const auto session = pool.open();

    const TraceText text{.tokens = std::span(tokens_).first(80), .pinned = pinned};
    ForwardPass pass(reader.vectors());
    pass.add_stretch(text, 0, text.raw().size(), 0);
    pass.finish();
    const auto count = std::ssize(pass.predictions());
    const Tensor nll =
        reader.losses(pass, reader.hidden(pass, std::span(&text, 1)), at::ones({count}, at::kFloat)).nll;
    session->read(std::span(tokens_).first(pinned));
    for (size_t i = 0; i < pass.predictions().size(); ++i) {
        const Token next = text.raw()[i];
        ASSERT_EQ(pass.predictions()[i].token, i);
        EXPECT_NEAR(cross_entropy_of(session->logits(), next), nll[static_cast<int64_t>(i)].item<double>(),
                    1e-3);
        session->read(std::span(&next, 1));
    }
}

std::string name_of(const ::testing::TestParamInfo<Kind>& kind) {
    constexpr const char* names[] = {"carry", "rebuild", "slots", "few_slots"};
    return names[static_cast<size_t>(kind.param)];
}

INSTANTIATE_TEST_SUITE_P(Kinds, EngineTest,
                         ::testing::Values(Kind::carry, Kind::rebuild, Kind::slots, Kind::few_slots),
                         name_of);

} // namespace
} // namespace spool::train
