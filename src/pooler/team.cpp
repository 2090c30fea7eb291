#include "pooler/team.h"

namespace spool::pooler {

Team::Team(int threads) {
    for (int i = 1; i < threads; ++i) {
        workers_.emplace_back([this] { work(); });
    }
}

Team::~Team() {
    {
        const std::scoped_lock lock(mutex_);
        stop_ = true;
    }
    begin_.notify_all();
    for (std::thread& worker : workers_) {
        worker.join();
    }
}

void Team::run(size_t count, const std::function<void(size_t)>& task, const std::function<void()>& own) {
    {
        const std::scoped_lock lock(mutex_);
        task_ = &task;
        count_ = count;
        next_ = 0;
        exception_ = nullptr;
        busy_ = workers_.size();
        ++round_;
    }
    begin_.notify_all();
    if (own) {
        try {
            own();
        } catch (...) {
            keep_exception();
        }
    }
    take_tasks();
    std::unique_lock lock(mutex_);
    end_.wait(lock, [this] { return busy_ == 0; });
    if (exception_ != nullptr) {
        std::rethrow_exception(exception_);
    }
}

void Team::work() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
        begin_.wait(lock, [&] { return stop_ || round_ != seen; });
        if (stop_) {
            return;
        }
        seen = round_;
        lock.unlock();
        take_tasks();
        lock.lock();
        if (--busy_ == 0) {
            end_.notify_one();
        }
    }
}

void Team::take_tasks() noexcept {
    for (size_t i = next_++; i < count_; i = next_++) {
        try {
            (*task_)(i);
        } catch (...) {
            keep_exception();
        }
    }
}

void Team::keep_exception() noexcept {
    const std::scoped_lock lock(mutex_);
    if (exception_ == nullptr) {
        exception_ = std::current_exception();
    }
    next_ = count_;
}

} // namespace spool::pooler
