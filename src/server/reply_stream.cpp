#include "server/reply_stream.h"

#include <utility>

#include "server/api_error.h"

namespace spool {

namespace {

constexpr std::chrono::milliseconds moment{200};

/// What a client is told about a reply that could not stand.
ApiError fault_error(const Turn& turn) {
    return {500, "server_error", fmt::format("{} ({} attempts)", explain(turn.fault), turn.attempts)};
}

} // namespace

ReplyStream::ReplyStream(Engine& engine, CompletionRequest request,
                         std::unique_ptr<Engine::Prepared> prepared, std::unique_ptr<ReplyWriter> writer,
                         std::function<void(const TurnOutcome&)> on_outcome)
    : engine_(engine), request_(std::move(request)), prepared_(std::move(prepared)),
      writer_(std::move(writer)), on_outcome_(std::move(on_outcome)), thread_([this] { draw(); }) {}

ReplyStream::~ReplyStream() {
    cancel();
    thread_.join();
}

void ReplyStream::send(const ReplyWriter::Events& events) {
    for (const std::string& event : events) {
        events_.push(event);
    }
}

void ReplyStream::draw() {
    const bool stream = request_.stream;
    Json failure;
    try {
        for (size_t choice = 0; choice < request_.task.choices && !cancelled_; ++choice) {
            OutcomeEvents events;
            events.cancelled = &cancelled_;
            if (stream) {
                send(writer_->begin(choice));
                events.on_thinking = [&](std::string_view text) { send(writer_->thinking(choice, text)); };
                events.on_answer = [&](std::string_view text) { send(writer_->answer(choice, text)); };
            }
            TurnOutcome outcome = engine_.run(*prepared_, choice, events);
            on_outcome_(outcome);
            if (outcome.turn.fault != TurnFault::none && !cancelled_) {
                throw fault_error(outcome.turn);
            }
            if (stream && prepared_->prompt.parser != nullptr && !outcome.turn.answer.empty()) {
                send(writer_->answer(choice, outcome.turn.answer));
            }
            if (stream) {
                send(writer_->end(choice, outcome));
            }
            outcomes_.push_back(std::move(outcome));
        }
    } catch (const std::exception&) {
        error_ = std::current_exception();
        failure = current_api_error().body();
    }
    prepared_.reset(); // the session is free before the client knows that the reply is complete
    if (stream && error_) {
        send(writer_->error(failure));
    } else if (stream && !outcomes_.empty()) {
        send(writer_->finish(outcomes_));
    }
    events_.close();
}

std::optional<std::string> ReplyStream::next_event() { return events_.pop(moment); }

Json ReplyStream::wait(const std::function<bool()>& abandoned) {
    while (!events_.finished()) {
        events_.pop(moment);
        if (abandoned()) {
            cancel();
        }
    }
    if (error_) {
        std::rethrow_exception(error_);
    }
    if (outcomes_.empty()) {
        throw ApiError(499, "cancelled", "the client left");
    }
    return writer_->whole(outcomes_);
}

} // namespace spool
