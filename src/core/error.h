// The one exception type of spool (public, spool/error.h) and the short way to throw it.
#pragma once

#include <utility>

#include <fmt/format.h>
#include <spool/error.h>

namespace spool {

/// Throws Error with a message in fmt's syntax: fail(ErrorCode::bad_file, "{}: too short", path).
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace spool
