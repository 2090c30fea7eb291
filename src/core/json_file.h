// JSON files that users bring along: every field is checked, and an error names the file and the field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace spool {

/// Keys sorted, so that a file with very many is read in n log n; Json (core/json.h) is for what spool
/// writes.
using JsonValue = nlohmann::json;

/// One JSON object and where it came from. A field that is absent or null counts as missing; one of another
/// type throws Error{bad_file}. Copies share the document.
class JsonFields {
  public:
    /// `source` names the object in messages: "config.json" or "config.json: rope_scaling". Throws
    /// Error{bad_file} if `object` is none.
    JsonFields(std::string source, JsonValue object);

    const std::string& source() const { return source_; }
    const JsonValue& json() const { return *object_; }
    /// nullptr when missing.
    const JsonValue* find(std::string_view key) const;

    /// Throw Error{bad_file} when missing. `u32` accepts 0 to 2^32 - 1 without a fraction.
    std::string string(std::string_view key) const;
    uint32_t u32(std::string_view key) const;
    double number(std::string_view key) const;
    JsonFields object(std::string_view key) const;

    std::optional<std::string> optional_string(std::string_view key) const;
    std::optional<uint32_t> optional_u32(std::string_view key) const;
    std::optional<double> optional_number(std::string_view key) const;
    std::optional<bool> optional_flag(std::string_view key) const;
    std::optional<JsonFields> optional_object(std::string_view key) const;

  private:
    JsonFields(std::string source, std::shared_ptr<const JsonValue> object);
    const JsonValue& require(std::string_view key) const;

    std::string source_;
    std::shared_ptr<const JsonValue> object_; ///< owns the whole document, points to this object
};

/// Reads `path`, whose root must be an object. Throws Error{not_found|io|bad_file}; a syntax error carries
/// its byte offset. Files above `limit` bytes are refused before they are read.
JsonFields read_json_file(const std::filesystem::path& path, size_t limit = size_t{16} << 20);

} // namespace spool
