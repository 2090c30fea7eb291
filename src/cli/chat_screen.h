// How a turn looks while it is made: thinking dimmed or folded, the answer plain.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "chat/turn.h"

namespace spool::cli {

/// What of the thinking is shown.
enum class ThinkingView { full, fold, off };
/// Throws Error{invalid_argument} naming the three.
ThinkingView thinking_view(const std::string& name);

class ChatScreen {
  public:
    /// `terminal`: stdout is one; else only answers are written, plain.
    ChatScreen(bool terminal, ThinkingView view) : terminal_(terminal), view_(view) {}

    /// The callbacks that draw one turn; the screen must outlive them.
    TurnEvents events(const std::atomic<bool>& interrupted);
    /// Ends the turn's text; what could not stand is said on stderr.
    void finish(const Turn& turn);
    /// The thinking of a turn, in full.
    void show_thinking(const Turn& turn) const;

    void set_view(ThinkingView view) { view_ = view; }
    ThinkingView view() const { return view_; }

  private:
    using Clock = std::chrono::steady_clock;
    void thinking(std::string_view text);
    void answer(std::string_view text);
    void close_thinking();

    bool terminal_;
    ThinkingView view_;
    bool thinking_open_ = false;
    size_t thought_ = 0; ///< pieces of thinking in this turn
    Clock::time_point drawn_;
};

} // namespace spool::cli
