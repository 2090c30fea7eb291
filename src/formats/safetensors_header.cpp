#include "formats/safetensors_header.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "formats/byte_reader.h"

namespace spool {

namespace {

constexpr size_t max_entries = size_t{1} << 18;
constexpr size_t max_metadata = size_t{1} << 16;
constexpr size_t max_dimensions = 32;

constexpr std::array<std::pair<std::string_view, DType>, 12> dtypes = {{{"F64", DType::f64},
                                                                        {"F32", DType::f32},
                                                                        {"F16", DType::f16},
                                                                        {"BF16", DType::bf16},
                                                                        {"I64", DType::i64},
                                                                        {"I32", DType::i32},
                                                                        {"I16", DType::i16},
                                                                        {"I8", DType::i8},
                                                                        {"U32", DType::u32},
                                                                        {"U16", DType::u16},
                                                                        {"U8", DType::u8},
                                                                        {"BOOL", DType::boolean}}};

/// Walks over the header's characters and leaves word of how far the parser has come.
class TrackedIterator {
  public:
    // NOLINTBEGIN(readability-identifier-naming): the standard prescribes these names
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    // NOLINTEND(readability-identifier-naming)

    TrackedIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
    reference operator*() const { return *at_; }
    TrackedIterator& operator++() {
        *reached_ = ++at_;
        return *this;
    }
    bool operator==(const TrackedIterator& other) const { return at_ == other.at_; }
    bool operator!=(const TrackedIterator& other) const { return at_ != other.at_; }

  private:
    const char* at_;
    const char** reached_;
};

/// A state machine over JSON events that admits the format's schema and nothing else.
class Handler final : public nlohmann::json_sax<Json> {
  public:
    Handler(std::string source, std::string_view text, size_t position)
        : source_(std::move(source)), begin_(text.data()), reached_(text.data()), position_(position) {}

    const char** reached() { return &reached_; }
    SafetensorsHeader take() { return std::move(header_); }

    bool null() override { unexpected("null"); }
    bool boolean(bool /*value*/) override { unexpected("a boolean"); }
    bool number_integer(number_integer_t value) override { bad("the negative number {}", value); }
    bool number_float(number_float_t /*value*/, const string_t& text) override {
        bad("the number {}, expected an integer below 2^63", printable(text));
    }
    bool binary(binary_t& /*value*/) override { unexpected("binary data"); }
    bool number_unsigned(number_unsigned_t value) override;
    bool string(string_t& value) override;
    bool start_object(size_t count) override;
    bool key(string_t& value) override;
    bool end_object() override;
    bool start_array(size_t count) override;
    bool end_array() override;
    bool parse_error(size_t at, const std::string& /*token*/,
                     const nlohmann::detail::exception& error) override {
        fail(ErrorCode::bad_file, "{}: byte {}: the header is not valid JSON: {}", source_, position_ + at,
             printable(error.what()));
    }

  private:
    enum class State {
        start,         // before the outer {
        entries,       // between entries
        entry,         // before an entry's {
        fields,        // between an entry's fields
        dtype,         // before its type
        shape,         // before [
        dimensions,    // within [ ]
        offsets,       // before [
        offset_values, // within [ ]
        metadata,      // before its {
        pairs,         // between pairs
        pair_value,    // before a value
        done
    };
    struct Fields {
        bool dtype = false;
        bool shape = false;
        std::vector<uint64_t> offsets;
    };

    template <typename... Args>
    [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) const {
        const bool inside = !entry_.name.empty();
        fail(ErrorCode::bad_file, "{}: byte {}: header{}: {}", source_, file_position(),
             inside ? " of tensor '" + printable(entry_.name) + "'" : "",
             fmt::format(format, std::forward<Args>(args)...));
    }
    [[noreturn]] void unexpected(std::string_view what) const { bad("{} where the format has none", what); }
    size_t file_position() const { return position_ + static_cast<size_t>(reached_ - begin_); }
    void finish_entry();

    std::string source_;
    const char* begin_;
    const char* reached_;
    size_t position_;
    State state_ = State::start;
    SafetensorsHeader header_;
    std::unordered_set<std::string> names_;
    bool metadata_seen_ = false;
    std::string metadata_key_;
    SafetensorsEntry entry_;
    Fields fields_;
};

bool Handler::number_unsigned(number_unsigned_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        bad("the number {}, expected an integer below 2^63", value);
    }
    if (state_ == State::dimensions) {
        if (entry_.shape.size() == max_dimensions) {
            bad("more than {} dimensions", max_dimensions);
        }
        entry_.shape.push_back(static_cast<int64_t>(value));
    } else if (state_ == State::offset_values) {
        if (fields_.offsets.size() == 2) {
            bad("data_offsets holds more than two numbers");
        }
        fields_.offsets.push_back(value);
    } else {
        unexpected("a number");
    }
    return true;
}

bool Handler::string(string_t& value) {
    if (state_ == State::dtype) {
        const auto* const it = std::ranges::find(dtypes, value, [](const auto& pair) { return pair.first; });
        if (it == dtypes.end()) {
            fail(
                ErrorCode::unsupported,
                "{}: byte {}: tensor '{}' has the type {}; supported are F64, F32, F16, BF16, I64, I32, I16, "
                "I8, U32, U16, U8 and BOOL",
                source_, file_position(), printable(entry_.name), printable(value));
        }
        entry_.dtype = it->second;
        fields_.dtype = true;
        state_ = State::fields;
    } else if (state_ == State::pair_value) {
        header_.metadata.emplace(std::move(metadata_key_), std::move(value));
        state_ = State::pairs;
    } else {
        unexpected("a string");
    }
    return true;
}

bool Handler::start_object(size_t /*count*/) {
    if (state_ == State::start) {
        state_ = State::entries;
    } else if (state_ == State::entry) {
        state_ = State::fields;
    } else if (state_ == State::metadata) {
        state_ = State::pairs;
    } else {
        unexpected("an object");
    }
    return true;
}

bool Handler::key(string_t& value) {
    if (state_ == State::pairs) {
        if (header_.metadata.contains(value) || header_.metadata.size() == max_metadata) {
            bad("duplicate or excess metadata key '{}'", printable(value));
        }
        metadata_key_ = std::move(value);
        state_ = State::pair_value;
    } else if (state_ == State::entries) {
        if (value == "__metadata__") {
            if (std::exchange(metadata_seen_, true)) {
                bad("duplicate __metadata__");
            }
            state_ = State::metadata;
            return true;
        }
        if (!names_.insert(value).second) {
            bad("duplicate tensor '{}'", printable(value));
        }
        if (names_.size() > max_entries) {
            bad("more than {} tensors", max_entries);
        }
        fields_ = {};
        entry_ = {.name = std::move(value), .shape = {}};
        state_ = State::entry;
    } else if (value == "dtype" && !fields_.dtype) {
        state_ = State::dtype;
    } else if (value == "shape" && !fields_.shape) {
        state_ = State::shape;
    } else if (value == "data_offsets" && fields_.offsets.empty()) {
        state_ = State::offsets;
    } else {
        bad("unknown or duplicate field '{}'", printable(value));
    }
    return true;
}

void Handler::finish_entry() {
    if (!fields_.dtype || !fields_.shape || fields_.offsets.size() != 2) {
        bad("dtype, shape or data_offsets is missing");
    }
    entry_.begin = fields_.offsets[0];
    entry_.end = fields_.offsets[1];
    entry_.position = file_position();
    header_.entries.push_back(std::exchange(entry_, {}));
}

bool Handler::end_object() {
    if (state_ == State::fields) {
        finish_entry();
        state_ = State::entries;
    } else if (state_ == State::pairs) {
        state_ = State::entries;
    } else {
        state_ = State::done;
    }
    return true;
}

bool Handler::start_array(size_t /*count*/) {
    if (state_ == State::shape) {
        state_ = State::dimensions;
    } else if (state_ == State::offsets) {
        state_ = State::offset_values;
    } else {
        unexpected("an array");
    }
    return true;
}

bool Handler::end_array() {
    if (state_ == State::dimensions) {
        fields_.shape = true;
    } else if (fields_.offsets.size() != 2) {
        bad("data_offsets holds {} numbers, expected 2", fields_.offsets.size());
    }
    state_ = State::fields;
    return true;
}

} // namespace

std::string_view safetensors_name(DType dtype) {
    const auto* const it = std::ranges::find(dtypes, dtype, [](const auto& pair) { return pair.second; });
    return it->first;
}

SafetensorsHeader parse_safetensors_header(const std::string& source, std::string_view text,
                                           size_t position) {
    if (!text.starts_with('{')) {
        fail(ErrorCode::bad_file, "{}: byte {}: the header does not start with '{{'; not a safetensors file",
             source, position);
    }
    Handler handler(source, text, position);
    const char* begin = std::to_address(text.begin());
    const char* end = std::to_address(text.end());
    Json::sax_parse(TrackedIterator(begin, handler.reached()), TrackedIterator(end, handler.reached()),
                    &handler);
    return handler.take();
}

} // namespace spool
