// The members of a zip archive that are stored without compression, as views into the archive's bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spool {

struct ZipMember {
    std::string_view name;
    std::span<const std::byte> data;
};

/// The central directory of an archive (zip64 too), whose bytes must outlive the object. Every offset and
/// size is checked, members may not overlap; checksums are not compared.
class ZipDirectory {
  public:
    /// `source` names the archive in messages. Throws Error{bad_file}, and Error{unsupported} for a
    /// compressed, encrypted or split archive, naming the member.
    ZipDirectory(const std::string& source, std::span<const std::byte> bytes);

    const std::vector<ZipMember>& members() const { return members_; }
    /// nullptr when absent.
    const ZipMember* find(std::string_view name) const;

  private:
    std::vector<ZipMember> members_;
    std::unordered_map<std::string_view, size_t> index_;
};

} // namespace spool
