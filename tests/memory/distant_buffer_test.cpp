#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "core/random.h"
#include "memory/distant_buffer.h"
#include "memory/schedule.h"

namespace spool {
namespace {

Transcript transcript_of(size_t pinned, size_t raw) {
    Transcript t;
    t.tokens.resize(pinned + raw);
    std::iota(t.tokens.begin(), t.tokens.end(), 0);
    t.pinned = t.window_start = pinned;
    return t;
}

/// The `keep` heaviest by sorting everything: the definition, slowly.
std::vector<uint32_t> brute_force_top(const std::vector<float>& mass, size_t keep) {
    std::vector<uint32_t> order(mass.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(
        order, [&](uint32_t a, uint32_t b) { return mass[a] > mass[b] || (mass[a] == mass[b] && a > b); });
    order.resize(std::min(keep, order.size()));
    std::ranges::sort(order);
    return order;
}

TEST(DistantBuffer, MovesExactlyWhatLeavesTheWindow) {
    Transcript t = transcript_of(3, 10);
    move_to_distant(t, 4);
    EXPECT_EQ(t.window_start, 9U);
    EXPECT_EQ(t.distant, (std::vector<uint32_t>{3, 4, 5, 6, 7, 8}));
    move_to_distant(t, 4);
    EXPECT_EQ(t.distant.size(), 6U) << "a second call must not move anything twice";
}

TEST(DistantBuffer, AWindowLargerThanTheTextMovesNothing) {
    Transcript t = transcript_of(2, 5);
    move_to_distant(t, 5);
    EXPECT_TRUE(t.distant.empty());
    EXPECT_EQ(t.window_start, 2U);
}

TEST(DistantBuffer, TopByMassEqualsBruteForceWithManyTies) {
    Random random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<float> mass(1 + random.below(300));
        for (float& m : mass) {
            m = static_cast<float>(random.below(20)); // few values: ties everywhere
        }
        const size_t keep = random.below(mass.size() + 2);
        EXPECT_EQ(top_by_mass(mass, keep), brute_force_top(mass, keep));
    }
}

TEST(DistantBuffer, EvictionKeepsTheOriginalOrderAndCounts) {
    Transcript t = transcript_of(0, 8);
    move_to_distant(t, 2);
    const std::vector<float> mass = {5, 1, 4, 0, 3, 2};
    EXPECT_EQ(evict(t, mass, 3), 3U);
    EXPECT_EQ(t.distant, (std::vector<uint32_t>{0, 2, 4}));
    EXPECT_EQ(t.evicted, 3U);
}

TEST(Schedule, BoundariesAreMultiplesOfTheChunkPastTheIdleLength) {
    EXPECT_EQ(next_boundary(0, 64, 512), 576U);
    EXPECT_EQ(next_boundary(575, 64, 512), 576U);
    EXPECT_EQ(next_boundary(576, 64, 512), 640U);
    EXPECT_EQ(next_boundary(0, 48, 48 + 32), 96U);
}

TEST(Schedule, RebasesBeforeTheNextChunkWouldReachTheLimit) {
    MemorySettings settings;
    settings.chunk = 64;
    settings.max_position = 1000;
    Transcript t = transcript_of(0, 936);
    EXPECT_FALSE(must_rebase(t, settings));
    t = transcript_of(0, 937);
    EXPECT_TRUE(must_rebase(t, settings));
}

} // namespace
} // namespace spool
