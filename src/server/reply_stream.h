// One request's replies, drawn on a thread of their own and sent on the connection's.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/channel.h"
#include "server/engine.h"
#include "server/openai.h"

namespace spool {

class ReplyStream {
  public:
    /// Starts drawing. `on_outcome` is called on the drawing thread after each choice.
    ReplyStream(Engine& engine, CompletionRequest request, std::unique_ptr<Engine::Prepared> prepared,
                std::unique_ptr<ReplyWriter> writer, std::function<void(const TurnOutcome&)> on_outcome);
    /// Cancels what is not drawn yet, and waits for it.
    ~ReplyStream();
    ReplyStream(const ReplyStream&) = delete;
    ReplyStream& operator=(const ReplyStream&) = delete;

    void cancel() { cancelled_ = true; }

    /// The next event, as the writer made it; nullopt when none came for a moment.
    std::optional<std::string> next_event();
    bool finished() { return events_.finished(); }

    /// Waits for all choices; asks `abandoned` now and then, and cancels when it says so. Throws what drawing
    /// threw.
    Json wait(const std::function<bool()>& abandoned);

  private:
    void draw();
    void send(const ReplyWriter::Events& events);

    Engine& engine_;
    CompletionRequest request_;
    std::unique_ptr<Engine::Prepared> prepared_;
    std::unique_ptr<ReplyWriter> writer_;
    std::function<void(const TurnOutcome&)> on_outcome_;
    Channel<std::string> events_;
    std::vector<TurnOutcome> outcomes_;
    std::exception_ptr error_;
    std::atomic<bool> cancelled_ = false;
    std::thread thread_;
};

} // namespace spool
