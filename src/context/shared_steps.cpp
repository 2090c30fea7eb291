#include "context/shared_steps.h"

#include <utility>
#include <vector>

namespace spool {

SharedSteps::SharedSteps(std::function<void(std::span<const Feed>)> run, size_t most)
    : run_(std::move(run)), most_(most) {}

SharedSteps::~SharedSteps() {
    if (thread_.joinable()) {
        {
            const std::scoped_lock lock(mutex_);
            ending_ = true;
        }
        brought_.notify_one();
        thread_.join();
    }
}

void SharedSteps::join() {
    const std::scoped_lock lock(mutex_);
    ++participants_;
    if (!thread_.joinable()) {
        thread_ = std::thread([this] { run_steps(); });
    }
}

void SharedSteps::leave() {
    {
        const std::scoped_lock lock(mutex_);
        --participants_;
    }
    brought_.notify_one();
}

void SharedSteps::feed(const Feed& feed) {
    std::unique_lock lock(mutex_);
    if (participants_ == 0) {
        run_(std::span(&feed, 1));
        return;
    }
    Waiting mine{.feed = feed, .error = nullptr};
    waiting_.push_back(&mine);
    brought_.notify_one();
    done_.wait(lock, [&] { return mine.done; });
    if (mine.error) {
        std::rethrow_exception(mine.error);
    }
}

void SharedSteps::run_steps() {
    std::unique_lock lock(mutex_);
    while (true) {
        brought_.wait(lock,
                      [&] { return ending_ || (!waiting_.empty() && waiting_.size() >= participants_); });
        if (ending_) {
            return;
        }
        run_step();
        done_.notify_all();
    }
}

void SharedSteps::run_step() {
    std::vector<Waiting*> taken;
    std::vector<Feed> feeds;
    size_t tokens = 0;
    while (!waiting_.empty() && (taken.empty() || tokens + waiting_.front()->feed.tokens.size() <= most_)) {
        taken.push_back(waiting_.front());
        feeds.push_back(waiting_.front()->feed);
        tokens += waiting_.front()->feed.tokens.size();
        waiting_.pop_front();
    }
    std::exception_ptr error;
    try {
        run_(feeds);
    } catch (...) {
        error = std::current_exception();
    }
    for (Waiting* one : taken) {
        one->error = error;
        one->done = true;
    }
}

} // namespace spool
