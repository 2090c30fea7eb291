#include "formats/zip.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "formats/byte_reader.h"

namespace spool {

namespace {

constexpr uint32_t end_signature = 0x06054b50;
constexpr uint32_t end64_signature = 0x06064b50;
constexpr uint32_t locator64_signature = 0x07064b50;
constexpr uint32_t central_signature = 0x02014b50;
constexpr uint32_t local_signature = 0x04034b50;
constexpr size_t end_size = 22;
constexpr size_t locator64_size = 20;
constexpr size_t central_size = 46;
constexpr size_t local_size = 30;
constexpr uint32_t in_zip64 = 0xFFFFFFFF; // a 32-bit field whose value stands in the zip64 extra field
constexpr uint16_t zip64_extra = 1;
constexpr uint64_t max_members = uint64_t{1} << 18;

struct Directory {
    uint64_t count;
    uint64_t size;
    uint64_t offset;
};

struct Entry {
    std::string_view name;
    uint64_t size;
    uint64_t local_offset;
    size_t position; // of the entry in the central directory
};

uint32_t signature_at(std::span<const std::byte> bytes, size_t offset) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
}

/// The end record is the last thing in the file but for a comment of up to 64 KiB.
std::optional<size_t> find_end_record(std::span<const std::byte> bytes) {
    constexpr size_t longest_comment = 0xFFFF;
    for (size_t comment = 0; comment <= longest_comment && comment + end_size <= bytes.size(); ++comment) {
        const size_t offset = bytes.size() - end_size - comment;
        if (signature_at(bytes, offset) == end_signature) {
            return offset;
        }
    }
    return std::nullopt;
}

Directory read_directory64(ByteReader& in, size_t locator) {
    in.seek(locator + 4 + 4, "the zip64 locator");
    in.seek(in.number<uint64_t>("the zip64 end record's offset"), "the zip64 end record's offset");
    const size_t position = in.offset();
    if (in.number<uint32_t>("the zip64 end record") != end64_signature) {
        in.bad(position, "the zip64 end record is not where its locator says");
    }
    in.take(8 + 2 + 2 + 4 + 4 + 8, "the zip64 end record");
    Directory directory{};
    directory.count = in.number<uint64_t>("the zip64 member count");
    directory.size = in.number<uint64_t>("the zip64 directory size");
    directory.offset = in.number<uint64_t>("the zip64 directory offset");
    return directory;
}

Directory read_directory(ByteReader& in, std::span<const std::byte> bytes) {
    const auto end = find_end_record(bytes);
    if (!end) {
        in.bad(bytes.size(), "no zip end record; not a zip archive, or a truncated one");
    }
    if (*end >= locator64_size && signature_at(bytes, *end - locator64_size) == locator64_signature) {
        return read_directory64(in, *end - locator64_size);
    }
    in.seek(*end + 4 + 2 + 2 + 2, "the end record");
    Directory directory{};
    directory.count = in.number<uint16_t>("the member count");
    directory.size = in.number<uint32_t>("the directory size");
    directory.offset = in.number<uint32_t>("the directory offset");
    return directory;
}

/// The 64-bit values of the zip64 extra field, for those of size, compressed size and offset that need one.
void read_extra(ByteReader extra, uint64_t& size, uint64_t& compressed, uint64_t& offset) {
    if (size != in_zip64 && compressed != in_zip64 && offset != in_zip64) {
        return;
    }
    while (extra.remaining() > 0) {
        const auto id = extra.number<uint16_t>("an extra field's id");
        const auto length = extra.number<uint16_t>("an extra field's length");
        if (id != zip64_extra) {
            extra.take(length, "an extra field");
            continue;
        }
        for (uint64_t* value : {&size, &compressed, &offset}) {
            if (*value == in_zip64) {
                *value = extra.number<uint64_t>("a zip64 value");
            }
        }
        return;
    }
}

Entry read_entry(ByteReader& in) {
    const size_t position = in.offset();
    if (in.number<uint32_t>("a member's entry") != central_signature) {
        in.bad(position, "the central directory holds something other than members");
    }
    in.take(2 + 2, "a member's version");
    const auto flags = in.number<uint16_t>("a member's flags");
    const auto method = in.number<uint16_t>("a member's compression method");
    in.take(2 + 2 + 4, "a member's time and checksum");
    uint64_t compressed = in.number<uint32_t>("a member's compressed size");
    uint64_t size = in.number<uint32_t>("a member's size");
    const auto name_length = in.number<uint16_t>("a member's name length");
    const auto extra_length = in.number<uint16_t>("a member's extra length");
    const auto comment_length = in.number<uint16_t>("a member's comment length");
    in.take(2 + 2 + 4, "a member's attributes");
    uint64_t offset = in.number<uint32_t>("a member's offset");
    const auto name = in.take_text(name_length, "a member's name");
    const auto extra = in.take(extra_length, "a member's extra field");
    in.take(comment_length, "a member's comment");
    const std::string source = in.source() + ": member '" + printable(name) + "'";
    read_extra(ByteReader(source + ": extra field", extra), size, compressed, offset);

    if ((flags & 1U) != 0) {
        fail(ErrorCode::unsupported, "{}: byte {}: is encrypted", source, position);
    }
    if (method != 0) {
        fail(ErrorCode::unsupported, "{}: byte {}: is compressed (method {}); save it again with torch.save",
             source, position, method);
    }
    if (size != compressed) {
        in.bad(position, "member '{}' is stored, but its sizes {} and {} differ", printable(name), compressed,
               size);
    }
    return {.name = name, .size = size, .local_offset = offset, .position = position};
}

/// Follows an entry to its local header and returns the bytes behind it.
std::span<const std::byte> read_member(ByteReader& in, const Entry& entry) {
    in.seek(entry.local_offset, "a member's offset");
    if (in.number<uint32_t>("a member's header") != local_signature) {
        in.bad(entry.position, "member '{}': no header at byte {}", printable(entry.name),
               entry.local_offset);
    }
    in.take(local_size - 4 - 2 - 2, "a member's header");
    const auto name_length = in.number<uint16_t>("a member's name length");
    const auto extra_length = in.number<uint16_t>("a member's extra length");
    if (in.take_text(name_length, "a member's name") != entry.name) {
        in.bad(static_cast<size_t>(entry.local_offset), "member '{}' has another name in its own header",
               printable(entry.name));
    }
    in.take(extra_length, "a member's extra field");
    return in.take(entry.size, "the data of member '" + std::string(entry.name) + "'");
}

} // namespace

ZipDirectory::ZipDirectory(const std::string& source, std::span<const std::byte> bytes) {
    ByteReader in(source, bytes);
    const Directory directory = read_directory(in, bytes);
    in.seek(directory.offset, "the directory offset");
    if (directory.size > in.remaining() || directory.count > directory.size / central_size) {
        in.bad(in.offset(), "a directory of {} members in {} bytes does not fit into the {} bytes left",
               directory.count, directory.size, in.remaining());
    }
    if (directory.count > max_members) {
        in.bad(in.offset(), "{} members, expected at most {}", directory.count, max_members);
    }
    std::vector<Entry> entries;
    entries.reserve(directory.count);
    for (uint64_t i = 0; i < directory.count; ++i) {
        entries.push_back(read_entry(in));
    }
    std::ranges::sort(entries, {}, &Entry::local_offset);
    members_.reserve(entries.size());
    uint64_t end_of_last = 0;
    for (const Entry& entry : entries) {
        if (entry.local_offset < end_of_last) {
            in.bad(entry.position, "member '{}' overlaps the one before it", printable(entry.name));
        }
        if (!index_.emplace(entry.name, members_.size()).second) {
            in.bad(entry.position, "duplicate member '{}'", printable(entry.name));
        }
        members_.push_back({.name = entry.name, .data = read_member(in, entry)});
        end_of_last = in.offset();
    }
}

const ZipMember* ZipDirectory::find(std::string_view name) const {
    const auto it = index_.find(name);
    return it == index_.end() ? nullptr : &members_[it->second];
}

} // namespace spool
