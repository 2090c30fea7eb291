// A progress line with an estimate of the time left, for work that takes more than a moment.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace spool {

/// Shows "label  37% 370/1000  12 s left" on stderr: redrawn in place on a terminal, one line every 10 s
/// elsewhere, nothing when the log level is quiet. Not thread-safe.
class Progress {
  public:
    /// `before`: done already when this program started; they do not count for the time left.
    Progress(std::string label, size_t total, size_t before = 0);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update(size_t done);
    void advance() { update(done_ + 1); }
    /// Clears the line (terminal) so that later output starts clean. Called by the destructor.
    void finish();

  private:
    using Clock = std::chrono::steady_clock;
    std::string label_;
    size_t total_;
    size_t before_;
    size_t done_;
    bool terminal_;
    bool shown_ = false;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_shown_ = start_;
};

/// True when stderr is a terminal.
bool stderr_is_terminal();

/// "850 ms", "12 s", "3 min 20 s", "2 h 05 min".
std::string format_duration(double seconds);
/// "512 B", "1.5 KiB", "23.4 MiB".
std::string format_bytes(double bytes);

} // namespace spool
