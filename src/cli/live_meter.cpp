#include "cli/live_meter.h"

#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/core.h>

namespace spool::cli {

LiveMeter::LiveMeter(bool wanted) {
    winsize size{};
    if (!wanted || ::isatty(STDOUT_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0 ||
        ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 5 || size.ws_col < 20) {
        return;
    }
    rows_ = size.ws_row;
    columns_ = size.ws_col;
    // One line feed makes room if the cursor is on the last row; then rows 1..rows-1 scroll on their own.
    std::fflush(stdout);
    fmt::print(stderr,
               "\n\x1b[A\x1b"
               "7\x1b[1;{}r\x1b"
               "8",
               rows_ - 1);
    std::fflush(stderr);
}

LiveMeter::~LiveMeter() {
    if (active()) {
        std::fflush(stdout);
        fmt::print(stderr,
                   "\x1b"
                   "7\x1b[r\x1b[{};1H\x1b[K\x1b"
                   "8",
                   rows_);
        std::fflush(stderr);
    }
}

bool LiveMeter::due() const { return active() && Clock::now() - last_ > std::chrono::milliseconds(100); }

void LiveMeter::show(const std::string& line) {
    if (!active()) {
        return;
    }
    last_ = Clock::now();
    std::fflush(stdout);
    fmt::print(stderr,
               "\x1b"
               "7\x1b[{};1H\x1b[7m{:<{}}\x1b[0m\x1b"
               "8",
               rows_, line.substr(0, static_cast<size_t>(columns_)), columns_);
    std::fflush(stderr);
}

} // namespace spool::cli
