#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/parallel.h"
#include "support/expect_error.h"

namespace spool {
namespace {

TEST(Parallel, every_index_is_worked_on_once_by_any_number_of_threads) {
    for (const size_t threads : {0U, 1U, 3U, 50U}) {
        std::vector<int> seen(37, 0);
        parallel_for(seen.size(), threads, [&](size_t i) { ++seen[i]; });
        EXPECT_EQ(seen, std::vector<int>(37, 1)) << threads;
    }
    parallel_for(0, 4, [](size_t) { FAIL(); });
}

TEST(Parallel, an_exception_reaches_the_caller_and_stops_the_rest) {
    for (const size_t threads : {1U, 4U}) {
        std::atomic<size_t> calls{0};
        test::expect_error(ErrorCode::bad_file, {"five"}, [&] {
            // Seconds of work in all: however late the throwing thread gets its turn, much of it is left.
            parallel_for(10000, threads, [&](size_t i) {
                ++calls;
                if (i == 5) {
                    fail(ErrorCode::bad_file, "five");
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            });
        });
        EXPECT_LT(calls, 10000U);
    }
}

} // namespace
} // namespace spool
