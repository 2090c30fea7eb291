// The meter's line at the bottom of the terminal while text scrolls above it.
#pragma once

#include <chrono>
#include <string>

namespace spool::cli {

/// Reserves the terminal's last row, also when its size changes. Does nothing unless stdout and stderr are
/// one terminal of at least five rows. The destructor gives the row back; the terminal is left usable even
/// after Ctrl-C, since the handler only sets a flag.
class LiveMeter {
  public:
    explicit LiveMeter(bool wanted);
    ~LiveMeter();
    LiveMeter(const LiveMeter&) = delete;
    LiveMeter& operator=(const LiveMeter&) = delete;

    bool active() const { return rows_ > 0; }
    /// True at most ten times a second, so that the caller formats a line only when it will be shown.
    bool due() const;
    void show(const std::string& line);

  private:
    using Clock = std::chrono::steady_clock;
    /// Sets the last row aside if the terminal's size is not the one known.
    void reserve_row();

    int rows_ = 0;
    int columns_ = 0;
    Clock::time_point last_;
};

} // namespace spool::cli
