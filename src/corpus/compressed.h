// The bytes of a file, decompressed on the way if it is gzip or zstd: its first bytes tell, not its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace spool {

class ByteStream {
  public:
    virtual ~ByteStream() = default;

    /// Fills `out` as far as the stream goes; 0 at the end. Throws Error{bad_file} for a damaged or truncated
    /// stream, Error{io} when the system cannot read.
    virtual size_t read(std::span<char> out) = 0;
    /// Bytes of the file itself that were consumed, for progress.
    virtual uint64_t position() const = 0;
};

/// Opens `path`. Throws Error{not_found|io}.
std::unique_ptr<ByteStream> open_compressed(const std::filesystem::path& path);

} // namespace spool
