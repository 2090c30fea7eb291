// Where threads that each drive a session of one pool meet, so that their tokens share decodes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>

#include "llm/tokenizer.h"

namespace spool {

class Session;

/// Tokens for one session in a shared decode.
struct Feed {
    Session* session;
    std::span<const Token> tokens;
};

/// A step begins when every participant has brought tokens, and is run for all of them by one thread, always
/// the same: OpenMP keeps a team of spinning threads for each thread that ever decoded. Without participants
/// the caller runs its steps itself.
class SharedSteps {
  public:
    /// `run` decodes what several sessions brought, at most `most` tokens; it is called with mutex() held.
    SharedSteps(std::function<void(std::span<const Feed>)> run, size_t most);
    ~SharedSteps();
    SharedSteps(const SharedSteps&) = delete;
    SharedSteps& operator=(const SharedSteps&) = delete;

    /// From here on steps wait for the calling thread too, until it leaves.
    void join();
    void leave();

    /// Returns when the tokens were read. Throws what the step threw, to each thread whose tokens were in it.
    /// While there are participants, only they may call this.
    void feed(const Feed& feed);

    /// Held during a step; to be locked for any other use of the cache.
    std::mutex& mutex() { return mutex_; }

  private:
    struct Waiting {
        Feed feed;
        bool done = false;
        std::exception_ptr error;
    };

    void run_steps();
    void run_step();

    std::function<void(std::span<const Feed>)> run_;
    size_t most_;
    std::mutex mutex_;
    std::condition_variable brought_; ///< tokens, or a participant left
    std::condition_variable done_;
    std::deque<Waiting*> waiting_;
    size_t participants_ = 0;
    bool ending_ = false;
    std::thread thread_;
};

} // namespace spool
