// Reading and writing files so that nothing is lost: read-only mappings, and writes that appear
// under their final name only when complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace spool {

/// A file mapped read-only for the life of the object. Movable, not copyable.
class MappedFile {
  public:
    /// Throws Error{not_found} or Error{io}, naming `path`. An empty file maps to an empty span.
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const { return bytes_; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
    std::span<const std::byte> bytes_;
};

/// Writes to `path`.partial-PID in the same folder; commit() flushes it to disk, renames it, and flushes
/// the folder, so that after it not even a power cut brings the old file back. Destroyed without a commit, it
/// removes the partial file, and whatever stood at `path` is untouched.
class AtomicFile {
  public:
    explicit AtomicFile(const std::filesystem::path& path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(std::span<const std::byte> bytes);
    void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
    /// Bytes written so far.
    size_t size() const { return size_; }
    /// Overwrites bytes written before, at `offset` (a header that is known only at the end).
    void overwrite(size_t offset, std::span<const std::byte> bytes);
    void commit();

  private:
    std::filesystem::path path_;
    std::filesystem::path partial_;
    int descriptor_ = -1;
    size_t size_ = 0;
};

/// The whole file as text. Throws Error{not_found} or Error{io}.
std::string read_text(const std::filesystem::path& path);
/// Replaces `path` with `text`, atomically.
void write_text(const std::filesystem::path& path, std::string_view text);

} // namespace spool
