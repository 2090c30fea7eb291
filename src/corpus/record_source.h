// Records one at a time, whatever kind of file they are in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/json.h"

namespace spool {

class RecordSource {
  public:
    virtual ~RecordSource() = default;

    /// The next record, or nothing at the end. A record that cannot be parsed is_discarded(). Throws
    /// Error{bad_file} naming the file where nothing behind can be read either.
    virtual std::optional<Json> next() = 0;
    /// "file:line" of the record returned last.
    virtual std::string where() const = 0;
    /// Bytes of the file that were consumed, for progress.
    virtual uint64_t position() const = 0;
};

/// JSON Lines, plain, gzip or zstd; Parquet, known by its first bytes, in builds with SPOOL_PARQUET. Throws
/// Error{not_found|io|bad_file}, Error{unsupported} for Parquet in other builds.
std::unique_ptr<RecordSource> open_records(const std::filesystem::path& path);

} // namespace spool
