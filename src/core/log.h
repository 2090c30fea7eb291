// Messages to the user, on stderr, so that stdout carries only results.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace spool {

enum class LogLevel { quiet, warning, info, debug };

/// Messages above this level are dropped. Default: info. Thread-safe.
void set_log_level(LogLevel level);
LogLevel log_level();

/// Writes "text\n" to stderr if `level` is enabled; warnings carry the prefix "warning: ".
void log(LogLevel level, std::string_view text);

template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace spool
