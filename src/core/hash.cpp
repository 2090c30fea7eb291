#include "core/hash.h"

#include <algorithm>
#include <array>
#include <hash/hash.h>
#include <hash/sha1/sha1.h>

#include <fmt/format.h>

#include "core/file.h"

namespace spool {

std::string sha256(std::span<const std::byte> bytes) { return hash_sha256_hex(bytes.data(), bytes.size()); }

std::string sha256_file(const std::filesystem::path& path) { return sha256(MappedFile(path).bytes()); }

std::string git_blob_sha1_file(const std::filesystem::path& path) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    vendor_hash::SHA1_CTX state{};
    vendor_hash::SHA1Init(&state);
    const auto add = [&](const void* data, size_t size) {
        vendor_hash::SHA1Update(&state, static_cast<const unsigned char*>(data), static_cast<uint32_t>(size));
    };
    const std::string header = fmt::format("blob {}", bytes.size());
    add(header.c_str(), header.size() + 1); // with the zero at its end
    constexpr size_t piece = size_t{1} << 30;
    for (size_t begin = 0; begin < bytes.size(); begin += piece) {
        add(bytes.data() + begin, std::min(piece, bytes.size() - begin));
    }
    std::array<unsigned char, 20> digest{};
    vendor_hash::SHA1Final(digest.data(), &state);
    return fmt::format("{:02x}", fmt::join(digest, ""));
}

} // namespace spool
