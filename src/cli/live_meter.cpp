#include "cli/live_meter.h"

#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/core.h>

namespace spool::cli {

LiveMeter::LiveMeter(bool wanted) {
    if (wanted && ::isatty(STDOUT_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0) {
        reserve_row();
    }
}

void LiveMeter::reserve_row() {
    winsize size{};
    const bool usable =
        ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row >= 5 && size.ws_col >= 20;
    if (usable && size.ws_row == rows_ && size.ws_col == columns_) {
        return;
    }
    std::fflush(stdout);
    if (active()) {
        fmt::print(stderr, "\x1b"
                           "7\x1b[r\x1b"
                           "8");
    }
    rows_ = usable ? size.ws_row : 0;
    columns_ = usable ? size.ws_col : 0;
    if (active()) {
        // One line feed makes room if the cursor is on the last row; then rows 1..rows-1 scroll on their own.
        fmt::print(stderr,
                   "\n\x1b[A\x1b"
                   "7\x1b[1;{}r\x1b"
                   "8",
                   rows_ - 1);
    }
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
    if (active()) {
        reserve_row(); // the window may have another size by now
    }
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
