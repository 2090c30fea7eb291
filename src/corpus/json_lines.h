// JSON Lines, plain, gzip or zstd, one value at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "corpus/compressed.h"

namespace spool {

class JsonLines {
  public:
    /// Throws Error{not_found|io}.
    explicit JsonLines(const std::filesystem::path& path);

    /// The next value, or nothing at the end; blank lines are skipped. Throws Error{bad_file} naming file
    /// and line for a line that is not JSON or longer than 64 MiB, and for a damaged or truncated stream.
    std::optional<Json> next();
    /// The next line that is not blank, unparsed, for callers that count bad lines rather than stop. Valid
    /// until the next call; nullptr at the end. Throws as next() does, but for lines that are not JSON.
    const std::string* next_text();
    /// 1 for the first line; the line returned last.
    size_t line() const { return line_; }
    /// Bytes of the file, compressed as it is, consumed so far.
    uint64_t position() const { return stream_->position(); }

  private:
    bool read_line();
    bool refill();

    std::filesystem::path path_;
    std::unique_ptr<ByteStream> stream_;
    std::vector<char> buffer_; ///< decompressed bytes; [begin_, end_) are still to be read
    size_t begin_ = 0;
    size_t end_ = 0;
    std::string text_;
    size_t line_ = 0;
};

} // namespace spool
