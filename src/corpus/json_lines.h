// JSON Lines, plain or gzip-compressed, one object at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/json.h"

namespace spool {

class JsonLines {
  public:
    /// Throws Error{not_found|io}.
    explicit JsonLines(const std::filesystem::path& path);
    ~JsonLines();
    JsonLines(const JsonLines&) = delete;
    JsonLines& operator=(const JsonLines&) = delete;

    /// The next object, or nothing at the end; blank lines are skipped. Throws Error{bad_file} naming file
    /// and line for a line that is not JSON or longer than 64 MiB, and for a damaged or truncated gzip
    /// stream.
    std::optional<Json> next();
    /// 1 for the first line; the line next() returned last.
    size_t line() const { return line_; }

  private:
    struct Closer {
        void operator()(void* file) const;
    };
    bool read_line(std::string& text);

    std::filesystem::path path_;
    std::unique_ptr<void, Closer> file_;
    size_t line_ = 0;
};

} // namespace spool
