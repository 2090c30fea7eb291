#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "context/session.h"
#include "support/expect_error.h"
#include "support/small_model.h"

namespace spool {
namespace {

TEST(SharedSteps, EveryStepHoldsTheTokensOfAllParticipants) {
    constexpr size_t threads = 4;
    std::vector<size_t> sizes;
    SharedSteps steps([&](std::span<const Feed> feeds) { sizes.push_back(feeds.size()); }, 64);
    for (size_t i = 0; i < threads; ++i) {
        steps.join();
    }
    std::vector<std::thread> running;
    running.reserve(4);
    for (size_t i = 0; i < threads; ++i) {
        running.emplace_back([&, i] {
            const std::vector<Token> token = {1};
            for (size_t step = 0; step < 10 * (i + 1); ++step) { // each ends at another time
                steps.feed({nullptr, token});
            }
            steps.leave();
        });
    }
    for (auto& thread : running) {
        thread.join();
    }
    std::vector<size_t> expected;
    for (size_t left = threads; left > 0; --left) {
        expected.insert(expected.end(), 10, left);
    }
    EXPECT_EQ(sizes, expected);
}

TEST(SharedSteps, AStepTakesNoMoreTokensThanItMay) {
    std::vector<size_t> sizes;
    SharedSteps steps(
        [&](std::span<const Feed> feeds) {
            size_t tokens = 0;
            for (const Feed& feed : feeds) {
                tokens += feed.tokens.size();
            }
            sizes.push_back(tokens);
        },
        50);
    for (int i = 0; i < 3; ++i) {
        steps.join();
    }
    std::vector<std::thread> running;
    running.reserve(4);
    for (int i = 0; i < 3; ++i) {
        running.emplace_back([&] {
            steps.feed({nullptr, std::vector<Token>(20, 1)});
            steps.leave();
        });
    }
    for (auto& thread : running) {
        thread.join();
    }
    EXPECT_EQ(sizes, (std::vector<size_t>{40, 20}));
}

TEST(SharedSteps, AnErrorReachesEveryThreadOfTheStepAndLaterStepsRun) {
    std::atomic<int> runs = 0;
    SharedSteps steps(
        [&](std::span<const Feed>) {
            if (runs++ == 0) {
                fail(ErrorCode::internal, "broken");
            }
        },
        64);
    std::atomic<int> errors = 0;
    std::vector<std::thread> running;
    running.reserve(4);
    steps.join();
    steps.join();
    for (int i = 0; i < 2; ++i) {
        running.emplace_back([&] {
            const std::vector<Token> token = {1};
            try {
                steps.feed({nullptr, token});
            } catch (const Error&) {
                ++errors;
            }
            steps.feed({nullptr, token});
            steps.leave();
        });
    }
    for (auto& thread : running) {
        thread.join();
    }
    EXPECT_EQ(errors, 2);
    EXPECT_EQ(runs, 2);
}

TEST(SharedSteps, SessionsOfSeveralThreadsReadWhatTheyWouldReadAlone) {
    const test::TemporaryFolder folder;
    RandomModelShape shape;
    shape.type = GGML_TYPE_F32;
    ModelOptions model_options;
    model_options.path = test::write_small_model(folder, shape);
    const Model model(model_options);
    PoolOptions options;
    options.memory.strategy = StrategyKind::window;
    options.memory.window = 32;
    options.memory.chunk = 16;
    options.memory.pin = 4;
    options.sessions = 3;
    options.threads = 1;
    options.key_type = options.value_type = GGML_TYPE_F32;
    const auto text = [](size_t i) {
        std::vector<Token> tokens(100 + 37 * i);
        for (size_t t = 0; t < tokens.size(); ++t) {
            tokens[t] = static_cast<Token>((t * 13 + i * 7) % 200 + 10);
        }
        return tokens;
    };
    std::vector<std::vector<float>> alone;
    for (size_t i = 0; i < 3; ++i) {
        SessionPool pool(model, nullptr, options);
        const auto session = pool.open();
        session->read(text(i));
        alone.emplace_back(session->logits().begin(), session->logits().end());
    }
    SessionPool pool(model, nullptr, options);
    std::vector<std::vector<float>> shared(3);
    std::vector<std::thread> running;
    running.reserve(4);
    for (size_t i = 0; i < 3; ++i) {
        running.emplace_back([&, i] {
            const auto session = pool.open();
            const Participant taking_part(pool);
            const auto tokens = text(i);
            session->read(std::span(tokens).first(10));
            for (const Token& token : std::span(tokens).subspan(10)) {
                session->read(std::span(&token, 1));
            }
            shared[i].assign(session->logits().begin(), session->logits().end());
        });
    }
    for (auto& thread : running) {
        thread.join();
    }
    for (size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(shared[i].size(), alone[i].size());
        for (size_t t = 0; t < shared[i].size(); ++t) {
            ASSERT_NEAR(shared[i][t], alone[i][t], 1e-4) << "session " << i;
        }
    }
}

TEST(SharedSteps, AFullSessionStopsAtItsOwnCells) {
    const test::TemporaryFolder folder;
    ModelOptions model_options;
    model_options.path = test::write_small_model(folder);
    const Model model(model_options);
    PoolOptions options;
    options.memory.strategy = StrategyKind::full;
    options.memory.full_length = 100;
    options.sessions = 3;
    SessionPool pool(model, nullptr, options);
    const auto first = pool.open();
    const auto second = pool.open();
    const auto third = pool.open();
    const std::vector<Token> much(150, 20);
    test::expect_error(ErrorCode::out_of_memory, {"100 cells"}, [&] { first->read(much); });
    EXPECT_EQ(first->transcript().tokens.size(), 100U);
    second->read(std::span(much).first(100));
    third->read(std::span(much).first(100));
}

} // namespace
} // namespace spool
