// Against plain PyTorch autograd: make_reference.py, which shares no code with spool.
#include <gtest/gtest.h>

#include "train/reference.h"

namespace spool::train {
namespace {

class ReferenceTest : public ::testing::TestWithParam<Layout> {
  protected:
    std::string name(const std::string& what) const {
        return std::string(to_string(GetParam())) + "/" + what;
    }

    static Tensor uniform_weights(const ForwardPass& pass) {
        const auto count = static_cast<int64_t>(pass.predictions().size());
        return at::full({count}, 1.0 / static_cast<double>(count), at::kFloat);
    }

    static Settings lora_settings() {
        Settings settings;
        settings.stage = Stage::lora;
        settings.lr = settings.pooler_lr = 3e-3;
        return settings;
    }

    test::Reference reference_;
    Reader reader_ = reference_.reader();
};

TEST_P(ReferenceTest, CrossEntropyTokenByToken) {
    const ForwardPass pass = reference_.pass(reader_, GetParam());
    ASSERT_EQ(pass.predictions().size(), reference_.trace().raw().size());
    const Tensor hidden = reader_.hidden(pass, std::vector{reference_.trace()});
    const Tensor nll = reader_.losses(pass, hidden, uniform_weights(pass)).nll;
    EXPECT_LT(test::largest_difference(test::by_token(pass, nll), reference_.tensor(name("per_token"))),
              2e-5);
}

TEST_P(ReferenceTest, GradientsOfPoolerAndAdapter) {
    const ForwardPass pass = reference_.pass(reader_, GetParam());
    const Tensor hidden = reader_.hidden(pass, std::vector{reference_.trace()});
    reader_.losses(pass, hidden, uniform_weights(pass)).loss.backward();
    for (const auto& group : trained_parameters(reader_, lora_settings())) {
        for (const auto& [parameter, tensor] : group.parameters) {
            const Tensor expected = reference_.tensor(name("gradient/" + parameter));
            ASSERT_TRUE(tensor.grad().defined()) << parameter;
            EXPECT_LT(test::largest_difference(tensor.grad(), expected),
                      2e-6 + 1e-4 * expected.abs().max().item<double>())
                << parameter;
        }
    }
}

TEST_P(ReferenceTest, TenOptimiserSteps) {
    Adam adam(trained_parameters(reader_, lora_settings()), {.weight_decay = 0.01});
    const Tensor expected = reference_.tensor(name("losses"));
    for (int64_t step = 0; step < expected.numel(); ++step) {
        const ForwardPass pass = reference_.pass(reader_, GetParam());
        const auto losses = reader_.losses(pass, reader_.hidden(pass, std::vector{reference_.trace()}),
                                           uniform_weights(pass));
        const auto wanted = expected[step].item<double>();
        EXPECT_NEAR(losses.loss.item<double>(), wanted, 1e-5 * wanted) << "step " << step;
        losses.loss.backward();
        adam.step(1);
    }
}

TEST_P(ReferenceTest, RecomputationGivesTheSameGradientsBitForBit) {
    const auto gradients = [&](bool recompute) {
        Reader reader = reference_.reader();
        reader.model().checkpoint_blocks = recompute;
        const ForwardPass pass = reference_.pass(reader, GetParam());
        reader.losses(pass, reader.hidden(pass, std::vector{reference_.trace()}), uniform_weights(pass))
            .loss.backward();
        std::vector<Tensor> all;
        for (const auto& group : trained_parameters(reader, lora_settings())) {
            for (const auto& [parameter, tensor] : group.parameters) {
                all.push_back(tensor.grad());
            }
        }
        return all;
    };
    const auto plain = gradients(false);
    const auto again = gradients(true);
    ASSERT_EQ(plain.size(), again.size());
    for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_TRUE(at::equal(plain[i], again[i])) << i;
    }
}

/// Products in bfloat16 keep about three digits (a step is 2^-8 of the value); sums, pooler and loss stay in
/// float32.
TEST_P(ReferenceTest, ProductsInBf16) {
    const auto run = [&](bool bf16) {
        Reader reader = reference_.reader();
        if (bf16) {
            multiply_in_bf16(reader.model(), true, true);
        }
        const ForwardPass pass = reference_.pass(reader, GetParam());
        const auto losses =
            reader.losses(pass, reader.hidden(pass, std::vector{reference_.trace()}), uniform_weights(pass));
        losses.loss.backward();
        std::vector<Tensor> gradients;
        for (const auto& group : trained_parameters(reader, lora_settings())) {
            for (const auto& [parameter, tensor] : group.parameters) {
                EXPECT_EQ(tensor.grad().scalar_type(), at::kFloat);
                gradients.push_back(tensor.grad().flatten());
            }
        }
        return std::pair(losses.nll, at::cat(gradients));
    };
    const auto [nll, gradients] = run(false);
    const auto [rounded_nll, rounded_gradients] = run(true);
    const auto difference = ((rounded_nll - nll).norm() / nll.norm()).item<double>();
    EXPECT_GT(difference, 0);
    EXPECT_LT(difference, 1.0 / 64);
    EXPECT_GT(at::cosine_similarity(rounded_gradients, gradients, 0).item<double>(), 0.99);
}

/// Traces packed into one pass do not see each other.
TEST_P(ReferenceTest, TracesOfOnePassAreIndependent) {
    std::vector<Token> shorter(reference_.trace().tokens.begin(), reference_.trace().tokens.begin() + 47);
    const std::vector<TraceText> traces = {
        reference_.trace(), {.tokens = shorter, .pinned = 3}, reference_.trace()};
    const auto add = [&](ForwardPass& pass, const TraceText& trace) {
        const MemorySettings memory = test::Reference::memory(GetParam());
        const auto compactions = plan_compactions(trace.raw().size(), memory, 4, reader_.mass_of(trace));
        GetParam() == Layout::carry ? pass.add_carry(trace, memory, compactions)
                                    : pass.add_rebuild(trace, compactions);
    };
    ForwardPass together(4);
    for (const TraceText& trace : traces) {
        add(together, trace);
    }
    together.finish();
    const auto count = static_cast<int64_t>(together.predictions().size());
    const Tensor nll =
        reader_.losses(together, reader_.hidden(together, traces), at::ones({count}, at::kFloat)).nll;
    for (size_t i = 0; i < traces.size(); ++i) {
        ForwardPass alone(4);
        add(alone, traces[i]);
        alone.finish();
        const auto length = static_cast<int64_t>(alone.predictions().size());
        ASSERT_EQ(static_cast<size_t>(length), traces[i].raw().size());
        const Tensor expected =
            test::by_token(alone, reader_
                                      .losses(alone, reader_.hidden(alone, std::span(&traces[i], 1)),
                                              at::ones({length}, at::kFloat))
                                      .nll);
        for (size_t j = 0; j < together.predictions().size(); ++j) {
            const Prediction& prediction = together.predictions()[j];
            if (prediction.trace == i) {
                EXPECT_NEAR(nll[static_cast<int64_t>(j)].item<double>(),
                            expected[static_cast<int64_t>(prediction.token)].item<double>(), 2e-5);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ReferenceTest, ::testing::Values(Layout::carry, Layout::rebuild),
                         [](const auto& layout) { return std::string(to_string(layout.param)); });

} // namespace
} // namespace spool::train
