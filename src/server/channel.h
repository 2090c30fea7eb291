// Pieces of a reply on their way from the thread that draws it to the thread that sends it: drawing never
// waits for a slow client.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace spool {

template <typename T>
class Channel {
  public:
    void push(T item) {
        {
            const std::scoped_lock lock(mutex_);
            items_.push_back(std::move(item));
        }
        changed_.notify_one();
    }
    /// Nothing will be pushed any more.
    void close() {
        {
            const std::scoped_lock lock(mutex_);
            closed_ = true;
        }
        changed_.notify_one();
    }
    /// The next item; nullopt after `patience` without one, or when there will be none.
    std::optional<T> pop(std::chrono::milliseconds patience) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, patience, [&] { return closed_ || !items_.empty(); });
        if (items_.empty()) {
            return std::nullopt;
        }
        T item = std::move(items_.front());
        items_.pop_front();
        return item;
    }
    /// Closed, and everything was popped.
    bool finished() {
        const std::scoped_lock lock(mutex_);
        return closed_ && items_.empty();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<T> items_;
    bool closed_ = false;
};

} // namespace spool
