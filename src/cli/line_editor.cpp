#include "cli/line_editor.h"

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <histedit.h>
#include <iostream>
#include <poll.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "cli/command.h"
#include "core/log.h"

namespace spool::cli {

namespace {

constexpr const char* paste_begins = "\033[200~"; // of bracketed paste
constexpr std::string_view paste_ends = "\033[201~";
constexpr int history_lines = 1000;

/// One character from the terminal; gives up when the program is asked to end.
int read_character(EditLine* /*editor*/, wchar_t* character) {
    constexpr int milliseconds = 200;
    std::mbstate_t state{};
    while (true) {
        pollfd input{STDIN_FILENO, POLLIN, 0};
        const int ready = ::poll(&input, 1, milliseconds);
        if (interrupted()) {
            return 0;
        }
        if (ready <= 0) {
            continue;
        }
        char byte = 0;
        if (::read(STDIN_FILENO, &byte, 1) != 1) {
            return 0;
        }
        const size_t used = std::mbrtowc(character, &byte, 1, &state);
        if (used == 0 || used == 1) {
            return 1;
        }
        if (used == static_cast<size_t>(-1)) { // not UTF-8
            state = {};
        }
    }
}

/// What a terminal pastes is inserted as it is, newlines too, instead of being run line by line.
unsigned char insert_paste(EditLine* editor, int /*key*/) {
    std::string pasted;
    char c = 0;
    while (!pasted.ends_with(paste_ends) && el_getc(editor, &c) == 1) {
        pasted += c == '\r' ? '\n' : c;
    }
    if (pasted.ends_with(paste_ends)) {
        pasted.erase(pasted.size() - paste_ends.size());
    }
    while (pasted.ends_with('\n')) {
        pasted.pop_back();
    }
    return pasted.empty() || el_insertstr(editor, pasted.c_str()) != 0 ? CC_ERROR : CC_REFRESH;
}

} // namespace

struct LineEditor::State {
    EditLine* editor = nullptr;
    History* history = nullptr;
    HistEvent event{};
    std::filesystem::path file;
    std::string prompt;
    bool cancelled = false;

    static char* prompt_of(EditLine* editor) {
        State* self = nullptr;
        el_get(editor, EL_CLIENTDATA, &self);
        return self->prompt.data();
    }
    static unsigned char cancel(EditLine* editor, int /*key*/) {
        State* self = nullptr;
        el_get(editor, EL_CLIENTDATA, &self);
        const LineInfoW* line = el_wline(editor);
        el_cursor(editor, static_cast<int>(line->lastchar - line->cursor));
        el_deletestr(editor, static_cast<int>(line->lastchar - line->buffer));
        self->cancelled = true;
        return CC_NEWLINE;
    }
};

LineEditor::LineEditor(std::filesystem::path history) {
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) {
        return;
    }
    std::setlocale(LC_CTYPE, "");
    state_ = std::make_unique<State>();
    State& s = *state_;
    s.file = std::move(history);
    s.editor = el_init("spool", stdin, stdout, stderr);
    s.history = history_init();
    if (s.editor == nullptr || s.history == nullptr) {
        log_warning("no line editor for this terminal; each line is taken as it is typed");
        state_.reset();
        return;
    }
    el_set(s.editor, EL_CLIENTDATA, &s);
    el_set(s.editor, EL_PROMPT, &State::prompt_of);
    el_set(s.editor, EL_EDITOR, "emacs");
    el_set(s.editor, EL_GETCFN, &read_character);
    el_set(s.editor, EL_HIST, &::history, s.history);
    el_set(s.editor, EL_ADDFN, "spool-paste", "insert what is pasted", &insert_paste);
    // Ctrl-C comes as a key: it drops the line, and nothing else.
    el_set(s.editor, EL_SETTY, "-d", "-isig", nullptr);
    el_set(s.editor, EL_ADDFN, "spool-cancel", "drop the line", &State::cancel);
    el_set(s.editor, EL_BIND, "^C", "spool-cancel", nullptr);
    el_set(s.editor, EL_BIND, paste_begins, "spool-paste", nullptr);
    el_set(s.editor, EL_BIND, "\033[1;5C", "em-next-word", nullptr);
    el_set(s.editor, EL_BIND, "\033[1;5D", "ed-prev-word", nullptr);
    ::history(s.history, &s.event, H_SETSIZE, history_lines);
    ::history(s.history, &s.event, H_SETUNIQUE, 1);
    ::history(s.history, &s.event, H_LOAD, s.file.c_str());
}

LineEditor::~LineEditor() {
    if (state_ == nullptr) {
        return;
    }
    State& s = *state_;
    std::error_code ignored;
    std::filesystem::create_directories(s.file.parent_path(), ignored);
    if (::history(s.history, &s.event, H_SAVE, s.file.c_str()) < 0) {
        log_warning("{}: the history could not be written", s.file.string());
    }
    history_end(s.history);
    el_end(s.editor);
}

LineEditor::Line LineEditor::read(const std::string& prompt) {
    if (state_ == nullptr) {
        Line line;
        if (!std::getline(std::cin, line.text)) {
            line.how = interrupted() ? Ended::interrupted : Ended::end_of_input;
        }
        return line;
    }
    State& s = *state_;
    s.prompt = prompt;
    // Before the prompt is seen: what is typed from then on is keys, not signals.
    el_set(s.editor, EL_PREP_TERM, 1);
    std::fputs("\033[?2004h", stdout);
    std::fflush(stdout);
    int count = 0;
    const char* read = el_gets(s.editor, &count);
    std::fputs("\033[?2004l", stdout);
    std::fflush(stdout);
    if (std::exchange(s.cancelled, false) || interrupted()) {
        return {Ended::interrupted, ""};
    }
    if (read == nullptr || count <= 0) {
        return {Ended::end_of_input, ""};
    }
    Line line{Ended::line, std::string(read, static_cast<size_t>(count))};
    while (line.text.ends_with('\n')) {
        line.text.pop_back();
    }
    if (line.text.find_first_not_of(" \t\n") != std::string::npos) {
        ::history(s.history, &s.event, H_ENTER, line.text.c_str());
    }
    return line;
}

std::filesystem::path state_file(const std::string& name) {
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    const std::filesystem::path folder =
        state != nullptr && *state != '\0'
            ? std::filesystem::path(state)
            : std::filesystem::path(home != nullptr ? home : ".") / ".local" / "state";
    return folder / "spool" / name;
}

} // namespace spool::cli
