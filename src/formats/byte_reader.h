// A cursor over untrusted little-endian bytes: nothing is read or skipped without a check against the end,
// and every complaint names the file, the byte offset and the field.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace spool {

static_assert(std::endian::native == std::endian::little, "spool reads its files on little-endian machines");

/// `text` fit for a message or a terminal: at most 80 characters, anything but printable ASCII as '?'.
std::string printable(std::string_view text);

/// a * b, or nothing if it exceeds 64 bits.
inline std::optional<uint64_t> checked_product(uint64_t a, uint64_t b) {
    if (a != 0 && b > std::numeric_limits<uint64_t>::max() / a) {
        return std::nullopt;
    }
    return a * b;
}

class ByteReader {
  public:
    /// `source` (a file, or a file and the member inside it) begins every message.
    ByteReader(std::string source, std::span<const std::byte> bytes)
        : source_(std::move(source)), bytes_(bytes) {}

    size_t offset() const { return offset_; }
    size_t remaining() const { return bytes_.size() - offset_; }
    const std::string& source() const { return source_; }

    template <typename T>
    T number(std::string_view field) {
        static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
        T value;
        std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
        return value;
    }

    /// The next `size` bytes, as a view.
    std::span<const std::byte> take(uint64_t size, std::string_view field) {
        if (size > remaining()) {
            bad(offset_, "{} needs {} bytes, but only {} are left; the file is truncated or damaged",
                printable(field), size, remaining());
        }
        const auto view = bytes_.subspan(offset_, static_cast<size_t>(size));
        offset_ += static_cast<size_t>(size);
        return view;
    }

    std::string_view take_text(uint64_t size, std::string_view field) {
        const auto view = take(size, field);
        return {reinterpret_cast<const char*>(view.data()), view.size()};
    }

    void seek(uint64_t offset, std::string_view field) {
        if (offset > bytes_.size()) {
            bad(offset_, "{} points to byte {}, past the end at {}", printable(field), offset, bytes_.size());
        }
        offset_ = static_cast<size_t>(offset);
    }

    /// Throws Error{bad_file} "source: byte offset: ...".
    template <typename... Args>
    [[noreturn]] void bad(size_t offset, fmt::format_string<Args...> format, Args&&... args) const {
        fail(ErrorCode::bad_file, "{}: byte {}: {}", source_, offset,
             fmt::format(format, std::forward<Args>(args)...));
    }

  private:
    std::string source_;
    std::span<const std::byte> bytes_;
    size_t offset_ = 0;
};

} // namespace spool
