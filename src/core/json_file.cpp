#include "core/json_file.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/file.h"

namespace spool {

namespace {

[[noreturn]] void wrong_type(const JsonFields& fields, std::string_view key, const JsonValue& found,
                             std::string_view expected) {
    fail(ErrorCode::bad_file, "{}: field '{}' is {}, expected {}", fields.source(), key, found.type_name(),
         expected);
}

std::string as_string(const JsonFields& fields, std::string_view key, const JsonValue& value) {
    if (!value.is_string()) {
        wrong_type(fields, key, value, "a string");
    }
    return value.get<std::string>();
}

double as_number(const JsonFields& fields, std::string_view key, const JsonValue& value) {
    if (!value.is_number()) {
        wrong_type(fields, key, value, "a number");
    }
    return value.get<double>();
}

uint32_t as_u32(const JsonFields& fields, std::string_view key, const JsonValue& value) {
    const double number = as_number(fields, key, value);
    if (number < 0 || number > std::numeric_limits<uint32_t>::max() || number != std::floor(number)) {
        fail(ErrorCode::bad_file, "{}: field '{}' is {}, expected a whole number from 0 to {}",
             fields.source(), key, value.dump(), std::numeric_limits<uint32_t>::max());
    }
    return static_cast<uint32_t>(number);
}

} // namespace

JsonFields::JsonFields(std::string source, JsonValue object)
    : JsonFields(std::move(source), std::make_shared<const JsonValue>(std::move(object))) {}

JsonFields::JsonFields(std::string source, std::shared_ptr<const JsonValue> object)
    : source_(std::move(source)), object_(std::move(object)) {
    if (!object_->is_object()) {
        fail(ErrorCode::bad_file, "{}: holds {}, expected a JSON object", source_, object_->type_name());
    }
}

const JsonValue* JsonFields::find(std::string_view key) const {
    const auto it = object_->find(key);
    return it == object_->end() || it->is_null() ? nullptr : &*it;
}

const JsonValue& JsonFields::require(std::string_view key) const {
    const JsonValue* value = find(key);
    if (value == nullptr) {
        fail(ErrorCode::bad_file, "{}: the field '{}' is missing", source_, key);
    }
    return *value;
}

std::string JsonFields::string(std::string_view key) const { return as_string(*this, key, require(key)); }

uint32_t JsonFields::u32(std::string_view key) const { return as_u32(*this, key, require(key)); }

double JsonFields::number(std::string_view key) const { return as_number(*this, key, require(key)); }

JsonFields JsonFields::object(std::string_view key) const {
    return {source_ + ": " + std::string(key), std::shared_ptr<const JsonValue>(object_, &require(key))};
}

std::optional<std::string> JsonFields::optional_string(std::string_view key) const {
    const JsonValue* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(as_string(*this, key, *value));
}

std::optional<uint32_t> JsonFields::optional_u32(std::string_view key) const {
    const JsonValue* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(as_u32(*this, key, *value));
}

std::optional<double> JsonFields::optional_number(std::string_view key) const {
    const JsonValue* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(as_number(*this, key, *value));
}

std::optional<bool> JsonFields::optional_flag(std::string_view key) const {
    const JsonValue* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_boolean()) {
        wrong_type(*this, key, *value, "true or false");
    }
    return value->get<bool>();
}

std::optional<JsonFields> JsonFields::optional_object(std::string_view key) const {
    return find(key) == nullptr ? std::nullopt : std::optional(object(key));
}

JsonFields read_json_file(const std::filesystem::path& path, size_t limit) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    if (bytes.size() > limit) {
        fail(ErrorCode::bad_file, "{}: {} bytes, more than the {} a file of this kind can hold",
             path.string(), bytes.size(), limit);
    }
    try {
        const auto* begin = reinterpret_cast<const char*>(bytes.data());
        return {path.string(), JsonValue::parse(begin, begin + bytes.size())};
    } catch (const JsonValue::parse_error& error) {
        fail(ErrorCode::bad_file, "{}: not valid JSON at byte {}", path.string(), error.byte);
    } catch (const JsonValue::exception& error) {
        fail(ErrorCode::bad_file, "{}: not valid JSON: {}", path.string(), error.what());
    }
}

} // namespace spool
