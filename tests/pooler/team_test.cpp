#include <stdexcept>

#include <gtest/gtest.h>

#include "pooler/team.h"

namespace spool::pooler {
namespace {

TEST(Team, runs_every_task_once) {
    for (const int threads : {-1, 1, 2, 5}) {
        Team team(threads);
        EXPECT_EQ(team.threads(), std::max(threads, 1));
        for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1000}}) {
            std::vector<std::atomic<int>> calls(count);
            std::atomic<int> own = 0;
            team.run(count, [&](size_t i) { ++calls[i]; }, [&] { ++own; });
            for (const std::atomic<int>& n : calls) {
                EXPECT_EQ(n, 1);
            }
            EXPECT_EQ(own, 1);
        }
    }
}

TEST(Team, own_work_stays_on_the_calling_thread) {
    Team team(4);
    std::thread::id own;
    team.run(100, [](size_t) {}, [&] { own = std::this_thread::get_id(); });
    EXPECT_EQ(own, std::this_thread::get_id());
}

TEST(Team, an_exception_is_rethrown_and_the_team_goes_on) {
    Team team(3);
    const auto throwing = [] { throw std::runtime_error("own"); };
    EXPECT_THROW(team.run(50, [](size_t) {}, throwing), std::runtime_error);
    EXPECT_THROW(team.run(50, [](size_t i) { i == 7 ? throw std::logic_error("task") : void(); }),
                 std::logic_error);
    std::atomic<int> calls = 0;
    team.run(50, [&](size_t) { ++calls; });
    EXPECT_EQ(calls, 50);
}

} // namespace
} // namespace spool::pooler
