#include "core/log.h"

#include <atomic>
#include <cstdio>

namespace spool {

namespace {

std::atomic<LogLevel>& current_level() {
    static std::atomic<LogLevel> level{LogLevel::info};
    return level;
}

} // namespace

void set_log_level(LogLevel level) { current_level() = level; }
LogLevel log_level() { return current_level(); }

void log(LogLevel level, std::string_view text) {
    if (level > log_level()) {
        return;
    }
    const std::string line = fmt::format("{}{}\n", level == LogLevel::warning ? "warning: " : "", text);
    std::fwrite(line.data(), 1, line.size(), stderr);
}

} // namespace spool
