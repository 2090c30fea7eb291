#include "formats/gguf.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/error.h"
#include "formats/byte_reader.h"
#include "formats/gguf_types.h"

namespace spool {

namespace {

const GgufValue& require(const GgufFile& file, std::string_view key) {
    const GgufValue* value = file.find(key);
    if (value == nullptr) {
        fail(ErrorCode::bad_file, "{}: the key '{}' is missing", file.path().string(), key);
    }
    return *value;
}

[[noreturn]] void wrong_type(const GgufFile& file, std::string_view key, gguf_type found,
                             std::string_view expected) {
    fail(ErrorCode::bad_file, "{}: key '{}' is of type {}, expected {}", file.path().string(), key,
         gguf_type_name(found), expected);
}

std::string as_string(const GgufFile& file, std::string_view key, const GgufValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
        return *text;
    }
    wrong_type(file, key, type_of(value), "a string");
}

uint32_t as_u32(const GgufFile& file, std::string_view key, const GgufValue& value) {
    return std::visit(
        [&](const auto& v) -> uint32_t {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
                if (!std::in_range<uint32_t>(v)) {
                    fail(ErrorCode::bad_file, "{}: key '{}' is {}, expected 0 to {}", file.path().string(),
                         key, v, std::numeric_limits<uint32_t>::max());
                }
                return static_cast<uint32_t>(v);
            } else {
                wrong_type(file, key, type_of(value), "an unsigned integer");
            }
        },
        value);
}

void check_quantizable(ggml_type type, size_t values, int64_t row_size) {
    const bool known = type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float != nullptr;
    if (!known || ggml_quantize_requires_imatrix(type)) {
        fail(ErrorCode::invalid_argument, "cannot quantise to {}", ggml_type_name(type));
    }
    const int64_t block = ggml_blck_size(type);
    if (row_size <= 0 || row_size % block != 0) {
        fail(ErrorCode::invalid_argument, "rows of {} values cannot be stored as {}: not a multiple of {}",
             row_size, ggml_type_name(type), block);
    }
    if (values % static_cast<size_t>(row_size) != 0) {
        fail(ErrorCode::invalid_argument, "{} values are no whole number of rows of {}", values, row_size);
    }
}

} // namespace

int64_t GgufTensor::elements() const {
    return std::accumulate(ne.begin(), ne.end(), int64_t{1}, std::multiplies<>());
}

const GgufValue* GgufFile::find(std::string_view key) const {
    const auto it = std::ranges::find(pairs_, key, &GgufPair::key);
    return it == pairs_.end() ? nullptr : &it->value;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
    const auto it = std::ranges::find(tensors_, name, &GgufTensor::name);
    return it == tensors_.end() ? nullptr : &*it;
}

std::string GgufFile::string(std::string_view key) const {
    return as_string(*this, key, require(*this, key));
}

uint32_t GgufFile::u32(std::string_view key) const { return as_u32(*this, key, require(*this, key)); }

float GgufFile::f32(std::string_view key) const {
    const GgufValue& value = require(*this, key);
    if (const auto* single = std::get_if<float>(&value)) {
        return *single;
    }
    if (const auto* wide = std::get_if<double>(&value)) {
        return static_cast<float>(*wide);
    }
    wrong_type(*this, key, type_of(value), "a floating-point number");
}

const std::vector<std::string>& GgufFile::strings(std::string_view key) const {
    const GgufValue& value = require(*this, key);
    const auto* array = std::get_if<GgufArray>(&value);
    if (array == nullptr) {
        wrong_type(*this, key, type_of(value), "an array of strings");
    }
    if (const auto* strings = std::get_if<std::vector<std::string>>(array)) {
        return *strings;
    }
    fail(ErrorCode::bad_file, "{}: key '{}' is an array of {}, expected an array of strings", path().string(),
         key, gguf_type_name(type_of(*array)));
}

std::optional<std::string> GgufFile::optional_string(std::string_view key) const {
    const GgufValue* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(as_string(*this, key, *value));
}

std::optional<uint32_t> GgufFile::optional_u32(std::string_view key) const {
    const GgufValue* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(as_u32(*this, key, *value));
}

std::vector<float> to_float(const GgufTensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    if (values.empty()) {
        return values;
    }
    if (tensor.type == GGML_TYPE_F32) {
        std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    } else if (const auto convert = ggml_get_type_traits(tensor.type)->to_float; convert != nullptr) {
        convert(tensor.data.data(), values.data(), tensor.elements());
    } else {
        fail(ErrorCode::unsupported,
             "tensor '{}' holds {}, which are not weights; expected a float or a "
             "quantised type",
             printable(tensor.name), ggml_type_name(tensor.type));
    }
    return values;
}

std::vector<std::byte> quantize(ggml_type type, std::span<const float> values, int64_t row_size) {
    check_quantizable(type, values.size(), row_size);
    const auto rows = static_cast<int64_t>(values.size()) / row_size;
    std::vector<std::byte> bytes(ggml_row_size(type, row_size) * static_cast<size_t>(rows));
    if (rows > 0) {
        ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, row_size, nullptr);
    }
    return bytes;
}

} // namespace spool
