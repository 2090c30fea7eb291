// Records of a Parquet file, by Apache Arrow; in builds with SPOOL_PARQUET only.
#pragma once

#include <filesystem>
#include <memory>

#include "corpus/record_source.h"

namespace spool {

/// Reads row by row, a row group in memory at a time. Lists, structs, strings, numbers and booleans become
/// JSON; columns of other types become null. Throws Error{not_found|io|bad_file}.
std::unique_ptr<RecordSource> open_parquet(const std::filesystem::path& path);

} // namespace spool
