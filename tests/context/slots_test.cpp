// Strategy `slots`, with a model and slots of random weights.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "context/session.h"
#include "core/random.h"
#include "support/expect_error.h"
#include "support/slots_bundle.h"
#include "support/small_model.h"

namespace spool {
namespace {

constexpr uint32_t count = 3;

class SlotsTest : public test::WithSmallModel {
  protected:
    void SetUp() override {
        bundle_ = test::write_slots_bundle(folder_ / "bundle", *model_, count);
        Random random(5);
        for (int i = 0; i < 600; ++i) {
            text_.push_back(static_cast<Token>(random.below(256)));
        }
    }

    static PoolOptions options() {
        PoolOptions options;
        options.memory.strategy = StrategyKind::slots;
        options.memory.window = 24;
        options.memory.chunk = 16;
        options.memory.max_slots = 12;
        options.memory.pin = 5;
        options.threads = 1;
        options.key_type = options.value_type = GGML_TYPE_F32;
        return options;
    }

    /// The logits after each token of text_[first, end), read one by one.
    std::vector<std::vector<float>> read(Session& session, size_t first, size_t end) const {
        std::vector<std::vector<float>> all;
        for (size_t i = first; i < end;) {
            const size_t take = i == 0 ? 5 : 1; // the first call holds what is pinned
            session.read(std::span(text_).subspan(i, take));
            i += take;
            all.emplace_back(session.logits().begin(), session.logits().end());
        }
        return all;
    }

    static double largest_difference(const std::vector<std::vector<float>>& a,
                                     const std::vector<std::vector<float>>& b) {
        double largest = a.size() == b.size() ? 0 : HUGE_VAL;
        for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            for (size_t j = 0; j < a[i].size(); ++j) {
                largest = std::max(largest, std::abs(double{a[i][j]} - double{b[i][j]}));
            }
        }
        return largest;
    }

    Bundle bundle_;
    std::vector<Token> text_;
};

TEST_F(SlotsTest, NothingHappensBeforeTheWindowIsFull) {
    auto full = options();
    full.memory.strategy = StrategyKind::full;
    full.memory.full_length = 512;
    SessionPool plain(*model_, nullptr, full);
    SessionPool pool(*model_, &bundle_, options());
    const auto expected = plain.open();
    const auto session = pool.open();
    EXPECT_EQ(largest_difference(read(*session, 0, 30), read(*expected, 0, 30)), 0);
    EXPECT_EQ(session->transcript().slot_groups(), 0U);
}

TEST_F(SlotsTest, TheCacheHoldsPinnedSlotsAndWindow) {
    SessionPool pool(*model_, &bundle_, options());
    const auto session = pool.open();
    session->read(std::span(text_).first(5));
    for (size_t i = 5; i < text_.size(); ++i) {
        session->read(std::span(text_).subspan(i, 1));
        const Transcript& t = session->transcript();
        ASSERT_EQ(session->cells_used(), 5 + t.slot_cells() + t.window().size());
        ASSERT_LE(t.slot_cells(), 12U);
        ASSERT_LE(session->cells_used(), pool.strategy().peak_cells());
        ASSERT_EQ(pool.context().last_position(0), t.next_position() - 1);
    }
    EXPECT_EQ(session->transcript().slot_groups(), 4U);
    EXPECT_GT(session->transcript().evicted, 0U);
}

TEST_F(SlotsTest, MemoryReachesBehindTheWindow) {
    auto window = options();
    window.memory.strategy = StrategyKind::window;
    const auto last = [&](const PoolOptions& options, Token early) {
        SessionPool pool(*model_, &bundle_, options);
        const auto session = pool.open();
        std::vector<Token> text(text_.begin(), text_.begin() + 70);
        text[10] = early;
        session->read(text);
        return std::vector(1, std::vector<float>(session->logits().begin(), session->logits().end()));
    };
    EXPECT_EQ(largest_difference(last(window, 1), last(window, 2)), 0);
    EXPECT_GT(largest_difference(last(options(), 1), last(options(), 2)), 0);
}

TEST_F(SlotsTest, ReadAtOnceInPiecesAndBesideAnotherSessionIsTheSame) {
    auto two = options();
    two.sessions = 2;
    SessionPool pool(*model_, &bundle_, two);
    const auto whole = pool.open();
    whole->read(std::span(text_).first(300));
    const auto pieces = pool.open();
    const auto logits = read(*pieces, 0, 300);
    EXPECT_LT(largest_difference({logits.back()},
                                 {std::vector<float>(whole->logits().begin(), whole->logits().end())}),
              1e-5);
    EXPECT_EQ(whole->transcript().slots, pieces->transcript().slots);
    EXPECT_EQ(whole->transcript().next_position(), pieces->transcript().next_position());
}

TEST_F(SlotsTest, RebasingMovesAllAlongAndChangesNothing) {
    auto near = options();
    near.memory.max_position = 160;
    near.memory.pin = 0; // the distance to pinned tokens does change
    SessionPool pool(*model_, &bundle_, near);
    near.memory.max_position = 0;
    SessionPool far(*model_, &bundle_, near);
    const auto session = pool.open();
    const auto expected = far.open();
    size_t rebased = 0;
    session->on_compaction = [&](const Compaction& done) {
        rebased += done.rebuilt ? 1 : 0;
        EXPECT_LE(session->transcript().next_position(), 160 - 16);
    };
    EXPECT_LT(largest_difference(read(*session, 0, 600), read(*expected, 0, 600)), 1e-4);
    EXPECT_GT(rebased, 4U);
}

TEST_F(SlotsTest, WhatDoesNotFitIsRefused) {
    auto few = options();
    few.memory.max_slots = 2;
    test::expect_error(ErrorCode::invalid_argument, {"--max-slots", "3"},
                       [&] { SessionPool(*model_, &bundle_, few); });
    test::expect_error(ErrorCode::invalid_argument, {"--bundle"},
                       [&] { SessionPool(*model_, nullptr, options()); });
    auto soft_prompt = options();
    soft_prompt.memory.strategy = StrategyKind::soft_prompt;
    test::expect_error(ErrorCode::invalid_argument, {"pooler"},
                       [&] { SessionPool(*model_, &bundle_, soft_prompt); });
}

} // namespace
} // namespace spool
