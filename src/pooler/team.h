// A few threads that share the tasks of one pooling phase. They sleep between phases, so that they never
// compete with the threads of the language model.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace spool::pooler {

class Team {
  public:
    /// `threads` includes the one that calls run(); values below 1 count as 1.
    explicit Team(int threads);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int threads() const { return static_cast<int>(workers_.size()) + 1; }

    /// Calls task(0) .. task(count - 1), each once, in any order and on any thread of the team, and returns
    /// when all have ended. `own`, if given, runs first on the calling thread while the others already take
    /// tasks. The first exception of `own` or a task is rethrown here; tasks not yet begun are then left out.
    /// Not reentrant, one caller at a time.
    void run(size_t count, const std::function<void(size_t)>& task, const std::function<void()>& own = {});

  private:
    void work();
    void take_tasks() noexcept;
    void keep_exception() noexcept;

    std::mutex mutex_;
    std::condition_variable begin_;
    std::condition_variable end_;
    uint64_t round_ = 0;
    size_t busy_ = 0;
    bool stop_ = false;
    std::exception_ptr exception_;

    const std::function<void(size_t)>* task_ = nullptr;
    size_t count_ = 0;
    std::atomic<size_t> next_ = 0;
    std::vector<std::thread> workers_;
};

} // namespace spool::pooler
