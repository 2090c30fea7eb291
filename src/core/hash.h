// SHA-256 of bytes and of files, as lower-case hex.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace spool {

std::string sha256(std::span<const std::byte> bytes);
/// Throws Error{not_found} or Error{io}.
std::string sha256_file(const std::filesystem::path& path);

} // namespace spool
