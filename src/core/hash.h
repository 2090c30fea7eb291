// SHA-256 of bytes and of files, and Git's name for a file, as lower-case hex.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace spool {

std::string sha256(std::span<const std::byte> bytes);
/// Throws Error{not_found} or Error{io}.
std::string sha256_file(const std::filesystem::path& path);
/// What `git hash-object` gives: the SHA-1 of "blob SIZE\0" and the content. Throws as sha256_file.
std::string git_blob_sha1_file(const std::filesystem::path& path);

} // namespace spool
