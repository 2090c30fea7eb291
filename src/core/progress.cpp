#include "core/progress.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "core/log.h"

namespace spool {

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) != 0; }

Progress::Progress(std::string label, size_t total, size_t before)
    : label_(std::move(label)), total_(total), before_(before), done_(before),
      terminal_(stderr_is_terminal()) {}

Progress::~Progress() { finish(); }

void Progress::update(size_t done) {
    done_ = done;
    if (log_level() < LogLevel::info || total_ == 0) {
        return;
    }
    const auto now = Clock::now();
    const double since_shown = std::chrono::duration<double>(now - last_shown_).count();
    if (since_shown < (terminal_ ? 0.1 : 10.0)) {
        return;
    }
    last_shown_ = now;
    shown_ = true;
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    std::string line = fmt::format("{}  {}% {}/{}", label_, 100 * done_ / total_, done_, total_);
    if (done_ > before_ && done_ < total_) {
        const double left =
            elapsed / static_cast<double>(done_ - before_) * static_cast<double>(total_ - done_);
        line += fmt::format("  {} left", format_duration(left));
    }
    line = terminal_ ? "\r\x1b[K" + line : line + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
}

void Progress::finish() {
    if (std::exchange(shown_, false) && terminal_) {
        std::fputs("\r\x1b[K", stderr);
    }
}

// The unit is chosen by the number as it will be printed: one that rounds up to a whole larger unit is given
// in that unit ("1 s", never "1000 ms").
std::string format_duration(double seconds) {
    if (const auto milliseconds = std::lround(seconds * 1000); milliseconds < 1000) {
        return fmt::format("{} ms", milliseconds);
    }
    const auto whole = std::lround(seconds);
    if (whole < 60) {
        return fmt::format("{} s", whole);
    }
    if (whole < 3600) {
        return fmt::format("{} min {:02} s", whole / 60, whole % 60);
    }
    const auto minutes = std::lround(seconds / 60);
    return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string format_bytes(double bytes) {
    constexpr std::array units = {"KiB", "MiB", "GiB", "TiB"};
    if (std::round(bytes) < 1024) {
        return fmt::format("{:.0f} B", std::round(bytes));
    }
    size_t unit = 0;
    double amount = bytes / 1024;
    while (std::round(amount * 10) >= 10240 && unit + 1 < units.size()) {
        amount /= 1024;
        ++unit;
    }
    return fmt::format("{:.1f} {}", amount, units[unit]);
}

} // namespace spool
