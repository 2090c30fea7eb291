#include "cli/chat_screen.h"

#include <cstdio>

#include <fmt/core.h>

#include "core/error.h"
#include "core/log.h"

namespace spool::cli {

namespace {

constexpr const char* dim = "\033[2m";
constexpr const char* plain = "\033[0m";
constexpr const char* clear_line = "\r\033[K";

void write(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

} // namespace

ThinkingView thinking_view(const std::string& name) {
    if (name == "full") {
        return ThinkingView::full;
    }
    if (name == "fold") {
        return ThinkingView::fold;
    }
    if (name != "off") {
        fail(ErrorCode::invalid_argument, "unknown view of the thinking \"{}\"; expected full, fold or off",
             name);
    }
    return ThinkingView::off;
}

TurnEvents ChatScreen::events(const std::atomic<bool>& interrupted) {
    thinking_open_ = false;
    thought_ = 0;
    TurnEvents events;
    events.on_thinking = [this](std::string_view text) { thinking(text); };
    events.on_answer = [this](std::string_view text) { answer(text); };
    events.on_retry = [this](TurnFault fault, uint32_t attempt) {
        close_thinking();
        thought_ = 0;
        write(terminal_ ? "\n" : "");
        log_info("{}; drawing another ({})", explain(fault), attempt + 1);
    };
    events.interrupted = &interrupted;
    return events;
}

void ChatScreen::thinking(std::string_view text) {
    ++thought_;
    if (!terminal_ || view_ == ThinkingView::off) {
        return;
    }
    if (view_ == ThinkingView::full) {
        write(thinking_open_ ? std::string(text) : dim + std::string(text));
    } else if (!thinking_open_ || Clock::now() - drawn_ > std::chrono::milliseconds(200)) {
        write(fmt::format("{}{}thinking, {} pieces; /think shows them{}", clear_line, dim, thought_, plain));
        drawn_ = Clock::now();
    }
    thinking_open_ = true;
}

void ChatScreen::close_thinking() {
    if (thinking_open_) {
        write(view_ == ThinkingView::full
                  ? fmt::format("{}\n\n", plain)
                  : fmt::format("{}{}thought, {} pieces{}\n", clear_line, dim, thought_, plain));
        thinking_open_ = false;
    }
}

void ChatScreen::answer(std::string_view text) {
    close_thinking();
    write(text);
}

void ChatScreen::finish(const Turn& turn) {
    close_thinking();
    write("\n");
    if (turn.fault != TurnFault::none && turn.reason != StopReason::interrupted) {
        log_warning("no reply: {}, {} times. Nothing of this turn was kept", explain(turn.fault),
                    turn.attempts);
    } else if (turn.reason == StopReason::interrupted) {
        log_info("(stopped)");
    } else if (turn.reason == StopReason::max_tokens) {
        log_info("(stopped at {} tokens; -n allows more)", turn.tokens);
    }
}

void ChatScreen::show_thinking(const Turn& turn) const {
    write(terminal_ ? fmt::format("{}{}{}\n", dim, turn.thinking, plain) : turn.thinking + "\n");
}

} // namespace spool::cli
