// The parser behind GgufFile's constructor. Lengths and counts are compared with the bytes that are left
// before anything is allocated, and what the parser keeps is bounded by a budget as well, so that a small
// element (an empty string takes 8 bytes in the file, a std::string 32) cannot be used as a lever.
#include <algorithm>
#include <bit>
#include <unordered_set>

#include "formats/byte_reader.h"
#include "formats/gguf.h"
#include "formats/gguf_types.h"

namespace spool {

namespace {

constexpr uint64_t metadata_budget = uint64_t{256} << 20; // the largest vocabularies need under 64 MiB
constexpr uint64_t default_alignment = 32;
constexpr std::string_view alignment_key = "general.alignment";

class HeaderParser {
  public:
    HeaderParser(const std::filesystem::path& path, std::span<const std::byte> bytes)
        : in_(path.string(), bytes) {}

    uint32_t magic_and_version();
    void counts();
    std::vector<GgufPair> pairs();
    std::vector<GgufTensor> tensors();
    /// Turns the offsets read by tensors() into views; call last.
    void locate(std::vector<GgufTensor>& tensors, std::span<const std::byte> file);

  private:
    struct Place {
        size_t tensor;
        uint64_t offset;       // from the start of the data section
        uint64_t size;         // bytes
        size_t field_position; // where the file says so
    };

    std::string_view string(std::string_view field);
    GgufValue value(const std::string& key);
    GgufArray array(const std::string& key);
    template <typename T>
    std::vector<T> numbers(uint64_t count, const std::string& key);
    std::vector<bool> booleans(uint64_t count, const std::string& key);
    std::vector<std::string> strings(uint64_t count, const std::string& key);
    void read_alignment(const GgufPair& pair, size_t position);
    std::vector<int64_t> dimensions(const std::string& name);
    void check_overlap(const std::vector<GgufTensor>& tensors) const;

    /// Accounts for `count` things of `bytes` bytes of memory before they are allocated.
    void charge(uint64_t count, uint64_t bytes, std::string_view what);

    ByteReader in_;
    uint64_t n_tensors_ = 0;
    uint64_t n_pairs_ = 0;
    uint64_t alignment_ = default_alignment;
    uint64_t charged_ = 0;
    std::vector<Place> places_;
};

void HeaderParser::charge(uint64_t count, uint64_t bytes, std::string_view what) {
    const auto cost = checked_product(count, bytes);
    if (!cost || *cost > metadata_budget - charged_) {
        in_.bad(in_.offset(), "{}: the metadata would take more than {} MiB of memory", printable(what),
                metadata_budget >> 20);
    }
    charged_ += *cost;
}

uint32_t HeaderParser::magic_and_version() {
    if (const auto magic = in_.take_text(4, "the magic number"); magic != "GGUF") {
        in_.bad(0, "this is not a GGUF file: it starts with '{}', expected 'GGUF'", printable(magic));
    }
    const size_t position = in_.offset();
    const auto version = in_.number<uint32_t>("the version");
    if (version != 2 && version != 3) {
        if ((version & 0xFFFFU) == 0 && version != 0) {
            in_.bad(position, "this GGUF file is big-endian; convert it to little-endian first");
        }
        in_.bad(position, "GGUF version {}, expected 2 or 3; convert the model again with current tools",
                version);
    }
    return version;
}

void HeaderParser::counts() {
    constexpr uint64_t smallest_tensor = 8 + 4 + 4 + 8; // empty name, no dimensions, type, offset
    constexpr uint64_t smallest_pair = 8 + 1 + 4 + 1;   // one-letter key, type, one byte
    const size_t position = in_.offset();
    n_tensors_ = in_.number<uint64_t>("the tensor count");
    n_pairs_ = in_.number<uint64_t>("the pair count");
    if (n_tensors_ > in_.remaining() / smallest_tensor) {
        in_.bad(position, "tensor count {} does not fit into the {} bytes that follow", n_tensors_,
                in_.remaining());
    }
    if (n_pairs_ > in_.remaining() / smallest_pair) {
        in_.bad(position + 8, "key-value pair count {} does not fit into the {} bytes that follow", n_pairs_,
                in_.remaining());
    }
    charge(n_tensors_, 4 * sizeof(GgufTensor), "the tensor count"); // with the set of names and the places
    charge(n_pairs_, 2 * sizeof(GgufPair), "the pair count");       // with the set of keys
}

std::string_view HeaderParser::string(std::string_view field) {
    const size_t position = in_.offset();
    const auto length = in_.number<uint64_t>(field);
    if (length > in_.remaining()) {
        in_.bad(position, "{} is said to be {} bytes long, but only {} are left", printable(field), length,
                in_.remaining());
    }
    return in_.take_text(length, field);
}

std::vector<GgufPair> HeaderParser::pairs() {
    std::vector<GgufPair> pairs;
    pairs.reserve(n_pairs_);
    std::unordered_set<std::string_view> seen;
    for (uint64_t i = 0; i < n_pairs_; ++i) {
        const size_t position = in_.offset();
        const auto key = string("a key");
        if (key.empty()) {
            in_.bad(position, "key {} is empty", i);
        }
        if (!seen.insert(key).second) {
            in_.bad(position, "duplicate key '{}'", printable(key));
        }
        charge(1, key.size(), "a key");
        pairs.push_back({std::string(key), {}});
        pairs.back().value = value(pairs.back().key);
        if (key == alignment_key) {
            read_alignment(pairs.back(), position);
        }
    }
    return pairs;
}

void HeaderParser::read_alignment(const GgufPair& pair, size_t position) {
    const auto* value = std::get_if<uint32_t>(&pair.value);
    if (value == nullptr) {
        in_.bad(position, "key '{}' is a {}, expected a u32", alignment_key,
                gguf_type_name(type_of(pair.value)));
    }
    if (*value < 8 || !std::has_single_bit(*value)) {
        in_.bad(position, "key '{}' is {}, expected a power of two of at least 8", alignment_key, *value);
    }
    alignment_ = *value;
}

GgufValue HeaderParser::value(const std::string& key) {
    const size_t position = in_.offset();
    const auto type = in_.number<uint32_t>("a value's type");
    switch (type) {
    case GGUF_TYPE_UINT8:
        return in_.number<uint8_t>(key);
    case GGUF_TYPE_INT8:
        return in_.number<int8_t>(key);
    case GGUF_TYPE_UINT16:
        return in_.number<uint16_t>(key);
    case GGUF_TYPE_INT16:
        return in_.number<int16_t>(key);
    case GGUF_TYPE_UINT32:
        return in_.number<uint32_t>(key);
    case GGUF_TYPE_INT32:
        return in_.number<int32_t>(key);
    case GGUF_TYPE_FLOAT32:
        return in_.number<float>(key);
    case GGUF_TYPE_UINT64:
        return in_.number<uint64_t>(key);
    case GGUF_TYPE_INT64:
        return in_.number<int64_t>(key);
    case GGUF_TYPE_FLOAT64:
        return in_.number<double>(key);
    case GGUF_TYPE_BOOL:
        return booleans(1, key).front();
    case GGUF_TYPE_STRING: {
        const auto text = string(key);
        charge(1, text.size(), key);
        return std::string(text);
    }
    case GGUF_TYPE_ARRAY:
        return array(key);
    default:
        in_.bad(position, "key '{}' has the unknown type {}", printable(key), type);
    }
}

GgufArray HeaderParser::array(const std::string& key) {
    const size_t position = in_.offset();
    const auto type = in_.number<uint32_t>(key);
    const auto count = in_.number<uint64_t>(key);
    switch (type) {
    case GGUF_TYPE_UINT8:
        return numbers<uint8_t>(count, key);
    case GGUF_TYPE_INT8:
        return numbers<int8_t>(count, key);
    case GGUF_TYPE_UINT16:
        return numbers<uint16_t>(count, key);
    case GGUF_TYPE_INT16:
        return numbers<int16_t>(count, key);
    case GGUF_TYPE_UINT32:
        return numbers<uint32_t>(count, key);
    case GGUF_TYPE_INT32:
        return numbers<int32_t>(count, key);
    case GGUF_TYPE_FLOAT32:
        return numbers<float>(count, key);
    case GGUF_TYPE_UINT64:
        return numbers<uint64_t>(count, key);
    case GGUF_TYPE_INT64:
        return numbers<int64_t>(count, key);
    case GGUF_TYPE_FLOAT64:
        return numbers<double>(count, key);
    case GGUF_TYPE_BOOL:
        return booleans(count, key);
    case GGUF_TYPE_STRING:
        return strings(count, key);
    case GGUF_TYPE_ARRAY:
        in_.bad(position, "key '{}' is an array of arrays, which no known model has", printable(key));
    default:
        in_.bad(position, "key '{}' is an array of the unknown type {}", printable(key), type);
    }
}

template <typename T>
std::vector<T> HeaderParser::numbers(uint64_t count, const std::string& key) {
    if (count > in_.remaining() / sizeof(T)) {
        in_.bad(in_.offset() - 8, "key '{}': {} elements of {} bytes do not fit into the {} bytes left",
                printable(key), count, sizeof(T), in_.remaining());
    }
    charge(count, sizeof(T), key);
    std::vector<T> values(count);
    const auto bytes = in_.take(count * sizeof(T), key);
    if (count > 0) {
        std::memcpy(values.data(), bytes.data(), bytes.size());
    }
    return values;
}

std::vector<bool> HeaderParser::booleans(uint64_t count, const std::string& key) {
    const auto bytes = in_.take(count, key);
    charge(count, 1, key);
    std::vector<bool> values;
    values.reserve(count);
    for (const std::byte b : bytes) {
        if (b > std::byte{1}) {
            in_.bad(in_.offset() - count + values.size(), "key '{}' holds the boolean {}, expected 0 or 1",
                    printable(key), std::to_integer<int>(b));
        }
        values.push_back(b == std::byte{1});
    }
    return values;
}

std::vector<std::string> HeaderParser::strings(uint64_t count, const std::string& key) {
    if (count > in_.remaining() / sizeof(uint64_t)) {
        in_.bad(in_.offset() - 8, "key '{}': {} strings do not fit into the {} bytes left", printable(key),
                count, in_.remaining());
    }
    charge(count, sizeof(std::string), key);
    std::vector<std::string> values;
    values.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
        const auto text = string(key);
        charge(1, text.size() < 16 ? 0 : text.size() + 16, key); // short strings live inside std::string
        values.emplace_back(text);
    }
    return values;
}

std::vector<int64_t> HeaderParser::dimensions(const std::string& name) {
    const size_t position = in_.offset();
    const auto n_dims = in_.number<uint32_t>("a tensor's dimension count");
    if (n_dims > GGML_MAX_DIMS) {
        in_.bad(position, "tensor '{}' has {} dimensions, expected at most {}", printable(name), n_dims,
                GGML_MAX_DIMS);
    }
    std::vector<int64_t> ne(n_dims);
    uint64_t elements = 1;
    for (int64_t& n : ne) {
        const size_t at = in_.offset();
        n = in_.number<int64_t>("a tensor's dimension");
        if (n < 0) {
            in_.bad(at, "tensor '{}' has the negative dimension {}", printable(name), n);
        }
        const auto product = checked_product(elements, static_cast<uint64_t>(std::max<int64_t>(n, 1)));
        if (!product || *product > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
            in_.bad(at, "tensor '{}': its dimensions multiply to more than 64 bits hold", printable(name));
        }
        elements = *product;
    }
    return ne;
}

std::vector<GgufTensor> HeaderParser::tensors() {
    std::vector<GgufTensor> tensors;
    tensors.reserve(n_tensors_);
    places_.reserve(n_tensors_);
    std::unordered_set<std::string_view> seen;
    for (uint64_t i = 0; i < n_tensors_; ++i) {
        GgufTensor tensor;
        size_t position = in_.offset();
        const auto name = string("a tensor's name");
        if (name.size() >= GGML_MAX_NAME) {
            in_.bad(position, "tensor name '{}' is {} bytes long, expected fewer than {}", printable(name),
                    name.size(), GGML_MAX_NAME);
        }
        if (!seen.insert(name).second) {
            in_.bad(position, "duplicate tensor '{}'", printable(name));
        }
        tensor.name = name;
        tensor.ne = dimensions(tensor.name);

        position = in_.offset();
        const auto type = in_.number<uint32_t>("a tensor's type");
        const bool known = type < GGML_TYPE_COUNT && ggml_blck_size(static_cast<ggml_type>(type)) > 0;
        if (!known) {
            in_.bad(position, "tensor '{}' has the unknown type {}", printable(name), type);
        }
        tensor.type = static_cast<ggml_type>(type);
        const int64_t block = ggml_blck_size(tensor.type);
        const int64_t row = tensor.ne.empty() ? 1 : tensor.ne.front();
        if (row % block != 0) {
            in_.bad(position, "tensor '{}': rows of {} elements are no multiple of {}'s block of {}",
                    printable(name), row, ggml_type_name(tensor.type), block);
        }
        const auto blocks = static_cast<uint64_t>(tensor.elements() / block);
        const auto size = checked_product(blocks, ggml_type_size(tensor.type));
        if (!size) {
            in_.bad(position, "tensor '{}' is larger than 64 bits can say", printable(name));
        }
        position = in_.offset();
        const auto offset = in_.number<uint64_t>("a tensor's offset");
        if (offset % alignment_ != 0) {
            in_.bad(position, "tensor '{}' has the offset {}, no multiple of the alignment {}",
                    printable(name), offset, alignment_);
        }
        places_.push_back({tensors.size(), offset, *size, position});
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

void HeaderParser::locate(std::vector<GgufTensor>& tensors, std::span<const std::byte> file) {
    const uint64_t start = (in_.offset() + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t available = start < file.size() ? file.size() - start : 0;
    for (const Place& place : places_) {
        if (place.offset > available || place.size > available - place.offset) {
            in_.bad(place.field_position,
                    "tensor '{}' takes {} bytes at offset {} of a data section of {} bytes; the file is "
                    "truncated or damaged",
                    printable(tensors[place.tensor].name), place.size, place.offset, available);
        }
        if (place.size > 0) {
            tensors[place.tensor].data = file.subspan(start + place.offset, place.size);
        }
    }
    std::erase_if(places_, [](const Place& place) { return place.size == 0; });
    std::ranges::sort(places_, {}, &Place::offset);
    check_overlap(tensors);
}

void HeaderParser::check_overlap(const std::vector<GgufTensor>& tensors) const {
    for (size_t i = 1; i < places_.size(); ++i) {
        const Place& before = places_[i - 1];
        const Place& place = places_[i];
        if (before.offset + before.size > place.offset) {
            in_.bad(place.field_position, "tensor '{}' at offset {} overlaps tensor '{}', which ends at {}",
                    printable(tensors[place.tensor].name), place.offset,
                    printable(tensors[before.tensor].name), before.offset + before.size);
        }
    }
}

} // namespace

GgufFile::GgufFile(const std::filesystem::path& path) : file_(path) {
    HeaderParser parser(path, file_.bytes());
    version_ = parser.magic_and_version();
    parser.counts();
    pairs_ = parser.pairs();
    tensors_ = parser.tensors();
    parser.locate(tensors_, file_.bytes());
}

} // namespace spool
