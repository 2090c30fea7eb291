// One turn of typed text: edited with history on a terminal (libedit), else one line of the input.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace spool::cli {

class LineEditor {
  public:
    /// `history`: file that lines are kept in from one run to the next; its folder is made.
    explicit LineEditor(std::filesystem::path history);
    ~LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    bool on_terminal() const { return state_ != nullptr; }

    enum class Ended { line, interrupted, end_of_input };
    struct Line {
        Ended how = Ended::line;
        std::string text; ///< without the newline at its end; a paste may hold others
    };
    /// `prompt` is shown on terminals only.
    Line read(const std::string& prompt);

  private:
    struct State;
    std::unique_ptr<State> state_; ///< nullptr: not a terminal
};

/// $XDG_STATE_HOME/spool/NAME, else ~/.local/state/spool/NAME.
std::filesystem::path state_file(const std::string& name);

} // namespace spool::cli
