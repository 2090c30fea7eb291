// The parts with a known answer: NF4, 8-bit Adam, the chunked loss, the pooler against the engine's.
#include <cmath>

#include <gtest/gtest.h>

#include "pooler/pooler.h"
#include "train/loss.h"
#include "train/nf4.h"
#include "train/optimizer.h"
#include "train/reference.h"

namespace spool::train {
namespace {

Tensor randn(at::IntArrayRef sizes, uint64_t seed) {
    return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}

TEST(Nf4Test, ErrorOnNormalValuesIsThePublishedOne) {
    const Tensor weight = randn({2048, 2048}, 1);
    const auto packed = pack_nf4(weight);
    EXPECT_NEAR((unpack(*packed) - weight).abs().mean().item<double>(), 0.0728, 0.0001);
    EXPECT_EQ(packed->bytes(), weight.numel() / 2 + weight.numel() / 64 * 4);
}

TEST(Nf4Test, DoubleQuantisationTakesAQuarterOfTheScales) {
    const Tensor weight = randn({512, 1024}, 2);
    const auto plain = pack_nf4(weight);
    const auto nested = pack_nf4(weight, 64, true);
    const int64_t blocks = weight.numel() / 64;
    EXPECT_EQ(nested->bytes(), weight.numel() / 2 + blocks + blocks / 256 * 4);
    const auto error = (unpack(*nested) - weight).abs().mean().item<double>();
    EXPECT_NEAR(error, (unpack(*plain) - weight).abs().mean().item<double>(), 0.0005);
}

TEST(Nf4Test, ExactAtItsOwnValues) {
    const auto packed = pack_nf4(randn({8, 64}, 3));
    const Tensor values = unpack(*packed);
    EXPECT_TRUE(at::equal(unpack(*pack_nf4(values)), values));
}

TEST(Adam8Test, StaysWithFloatAdamOverFiftySteps) {
    Tensor plain = randn({128, 128}, 4).requires_grad_();
    const Tensor start = plain.detach().clone();
    Tensor coded = plain.detach().clone().requires_grad_();
    Adam adam({{.parameters = {{"w", plain}}, .lr = 2e-4}}, {});
    Adam adam8({{.parameters = {{"w", coded}}, .lr = 2e-4}}, {.eight_bit = true});
    for (uint64_t step = 0; step < 50; ++step) {
        const Tensor gradient = randn({128, 128}, 100 + step);
        plain.mutable_grad() = gradient;
        coded.mutable_grad() = gradient.clone();
        adam.step(1);
        adam8.step(1);
    }
    const auto apart = (plain - coded).abs().mean().item<double>();
    EXPECT_LT(apart, 6e-5);
    EXPECT_LT(apart, 0.1 * (plain - start).abs().mean().item<double>());
    EXPECT_EQ(adam8.state().at("w/m").scalar_type(), at::kByte);
    EXPECT_EQ(adam8.state().at("w/v").scalar_type(), at::kByte);
}

TEST(Adam8Test, SmallTensorsKeepFloatState) {
    Adam adam({{.parameters = {{"w", randn({4095}, 5).requires_grad_()}}}}, {.eight_bit = true});
    EXPECT_EQ(adam.state().at("w/m").scalar_type(), at::kFloat);
}

TEST(LossTest, EqualsCrossEntropyOverAllLogitsWithGradients) {
    Tensor hidden = randn({37, 16}, 6).requires_grad_();
    Tensor head = randn({50, 16}, 7).requires_grad_();
    const Tensor targets = at::randint(50, {37}, at::make_generator<at::CPUGeneratorImpl>(8), at::kLong);
    const Tensor weights = at::rand({37}, at::make_generator<at::CPUGeneratorImpl>(9), at::kFloat);
    const Tensor teacher = randn({37, 16}, 10);

    const auto chunked = cross_entropy(hidden, head, targets, weights, teacher, 0.7, 10);
    (chunked.loss * 3).backward();
    const Tensor hidden_gradient = hidden.grad().clone();
    const Tensor head_gradient = head.grad().clone();
    hidden.mutable_grad().reset();
    head.mutable_grad().reset();

    const Tensor log_p = at::log_softmax(at::mm(hidden, head.t()), -1);
    const Tensor log_t = at::log_softmax(at::mm(teacher, head.detach().t()), -1);
    const Tensor nll = -log_p.gather(1, targets.unsqueeze(1)).squeeze(1);
    const Tensor kl = (log_t.exp() * (log_t - log_p)).sum(-1);
    const Tensor loss = ((nll + kl * 0.7) * weights).sum();
    (loss * 3).backward();

    EXPECT_LT(test::largest_difference(chunked.nll, nll), 1e-5);
    EXPECT_NEAR(chunked.loss.item<double>(), loss.item<double>(), 1e-4);
    EXPECT_LT(test::largest_difference(hidden_gradient, hidden.grad()), 1e-5);
    EXPECT_LT(test::largest_difference(head_gradient, head.grad()), 1e-5);
}

TEST(PoolerNetTest, EqualsTheEnginesPooler) {
    const PoolerShape shape{.hidden = 64, .n_sp = 8, .heads = 4, .layers = 3, .ffn = 96};
    const PoolerNet net(shape, 0.9, 11);
    for (const int64_t length : {1, 2, 31, 300}) {
        const Tensor rows = randn({length, 64}, 12);
        const auto pooled = net.forward(rows.unsqueeze(0), at::full({1}, length, at::kLong));
        Pooler engine(net.weights(), 2);
        const auto* values = rows.const_data_ptr<float>();
        const PoolResult expected =
            engine.pool(static_cast<size_t>(length), [&](size_t first, size_t count, float* out) {
                std::copy(values + first * 64, values + (first + count) * 64, out);
            });
        for (size_t i = 0; i < expected.soft_prompt.size(); ++i) {
            EXPECT_NEAR(pooled.soft_prompt.flatten()[static_cast<int64_t>(i)].item<double>(),
                        double{expected.soft_prompt[i]}, 2e-6);
        }
        for (size_t j = 0; j < expected.mass.size(); ++j) {
            EXPECT_NEAR(pooled.mass[0][static_cast<int64_t>(j)].item<double>(), double{expected.mass[j]},
                        2e-5 * (1 + double{expected.mass[j]}));
        }
    }
}

TEST(PoolerNetTest, PaddingAndSharedPastChangeNothing) {
    const PoolerNet net({.hidden = 32, .n_sp = 4, .heads = 4, .layers = 2, .ffn = 48}, 1.0, 13);
    const Tensor rows = randn({20, 32}, 14);
    const Tensor lengths = at::tensor({7, 20}, at::kLong);
    const auto shared = net.forward(rows.unsqueeze(0), lengths);
    const auto padded = net.forward(at::stack({rows, rows}), lengths);
    const auto alone = net.forward(rows.narrow(0, 0, 7).unsqueeze(0), at::tensor({7}, at::kLong));
    EXPECT_LT(test::largest_difference(shared.soft_prompt, padded.soft_prompt), 1e-6);
    EXPECT_LT(test::largest_difference(shared.soft_prompt[0], alone.soft_prompt[0]), 1e-6);
}

} // namespace
} // namespace spool::train
