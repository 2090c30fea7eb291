#include "core/hash.h"

#include <hash/hash.h>

#include "core/file.h"

namespace spool {

std::string sha256(std::span<const std::byte> bytes) { return hash_sha256_hex(bytes.data(), bytes.size()); }

std::string sha256_file(const std::filesystem::path& path) { return sha256(MappedFile(path).bytes()); }

} // namespace spool
