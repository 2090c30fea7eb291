#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace spool {

void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& work) {
    threads = std::min(threads, count);
    if (threads <= 1) {
        for (size_t i = 0; i < count; ++i) {
            work(i);
        }
        return;
    }
    std::atomic<size_t> next{0};
    std::exception_ptr error;
    std::mutex error_mutex;
    const auto loop = [&] {
        try {
            for (size_t i = next++; i < count; i = next++) {
                work(i);
            }
        } catch (...) {
            next = count;
            const std::scoped_lock lock(error_mutex);
            if (!error) {
                error = std::current_exception();
            }
        }
    };
    std::vector<std::thread> team;
    team.reserve(threads);
    for (size_t i = 0; i < threads; ++i) {
        team.emplace_back(loop);
    }
    for (std::thread& thread : team) {
        thread.join();
    }
    if (error) {
        std::rethrow_exception(error);
    }
}

} // namespace spool
