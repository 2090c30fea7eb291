// A pooler over hidden states: what it reads, and gradients through it into the blocks that make them.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/random.h"
#include "support/small_model.h"
#include "support/temporary_folder.h"
#include "train/export.h"
#include "train/reader.h"

namespace spool::train {
namespace {

class HiddenTest : public ::testing::Test {
  protected:
    HiddenTest() {
        settings_.model = test::write_small_model(folder_);
        settings_.memory = MemoryKind::hidden;
        settings_.stage = Stage::scratch;
        settings_.hidden_blocks = 1;
        settings_.n_sp = 4;
        settings_.pooler_heads = 4;
        settings_.pooler_layers = 2;
        settings_.pooler_ffn = 48;
        settings_.chunk = 16;
        settings_.window_min = settings_.window_max = 24;
        settings_.device = "cpu";
        Random random(11);
        tokens_.reserve(120);
        for (int i = 0; i < 120; ++i) {
            tokens_.push_back(static_cast<Token>(random.below(256)));
        }
    }

    Reader reader() const { return make_reader(settings_, GgufFile(settings_.model)); }
    TraceText text() const { return {.tokens = tokens_, .pinned = 5}; }

    ForwardPass pass() const {
        const MemorySettings memory = memory_settings(settings_);
        ForwardPass pass(settings_.n_sp);
        pass.add_carry(text(), memory, plan_compactions(text().raw().size(), memory, settings_.n_sp, {}));
        pass.finish();
        return pass;
    }

    Tensor vectors(const Reader& reader) const {
        const TraceText trace = text();
        return reader.memory_vectors(pass(), std::span(&trace, 1));
    }

    double loss(Reader& reader) const {
        const at::NoGradGuard no_grad;
        return graph(reader).item<double>();
    }
    Tensor graph(Reader& reader) const {
        const TraceText trace = text();
        const ForwardPass carry = pass();
        return reader
            .losses(carry, reader.hidden(carry, std::span(&trace, 1)),
                    at::ones({std::ssize(carry.predictions())}, at::kFloat))
            .loss;
    }

    test::TemporaryFolder folder_;
    Settings settings_;
    std::vector<Token> tokens_;
};

TEST_F(HiddenTest, vectors_depend_on_text_that_only_attention_carries_to_the_distant_tokens) {
    const Reader hidden = reader();
    const Tensor before = vectors(hidden);
    // A pinned token is never pooled itself.
    tokens_[2] = (tokens_[2] + 1) % 256;
    EXPECT_GT((vectors(hidden) - before).abs().max().item<float>(), 1e-4F);

    settings_.memory = MemoryKind::embedding;
    const Reader embedding = reader();
    const Tensor same = vectors(embedding);
    tokens_[2] = (tokens_[2] + 1) % 256;
    EXPECT_TRUE(at::equal(vectors(embedding), same));
}

TEST_F(HiddenTest, a_first_block_learns_through_the_pooler) {
    Reader trained = reader();
    trained_parameters(trained, settings_); // asks for gradients
    Tensor& weight = trained.model().blocks.front().ffn_down.weight;
    graph(trained).backward();
    const Tensor gradient = weight.grad();
    ASSERT_TRUE(gradient.defined());

    const at::NoGradGuard no_grad;
    Random random(3);
    Tensor direction = at::empty_like(weight);
    for (float& value :
         std::span(direction.mutable_data_ptr<float>(), static_cast<size_t>(direction.numel()))) {
        value = static_cast<float>(random.normal());
    }
    const double step = 1e-3;
    weight.add_(direction, step);
    const double above = loss(trained);
    weight.sub_(direction, 2 * step);
    const double below = loss(trained);
    const auto expected = (gradient * direction).sum().item<double>();
    EXPECT_NEAR((above - below) / (2 * step), expected, 0.02 * std::abs(expected) + 1e-4);
}

TEST_F(HiddenTest, more_blocks_than_the_model_has_are_refused_and_so_is_export) {
    settings_.hidden_blocks = 99;
    EXPECT_THROW(reader(), Error);
    settings_.hidden_blocks = 1;
    Reader trained = reader();
    const GgufFile model(settings_.model);
    EXPECT_THROW(write_bundle(trained, settings_, model, folder_ / "bundle", {}), Error);
}

} // namespace
} // namespace spool::train
