#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include <fmt/ranges.h>

#include "formats/byte_reader.h"
#include "formats/gguf.h"
#include "formats/gguf_types.h"

namespace spool {

namespace {

constexpr uint32_t written_version = 3;
constexpr uint32_t written_alignment = 32;
constexpr std::string_view alignment_key = "general.alignment";

/// The header section, built in memory: it must be whole before the data's offset is known.
class Header {
  public:
    template <typename T>
    void number(T value) {
        static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
        std::array<char, sizeof(T)> bytes{};
        std::memcpy(bytes.data(), &value, sizeof(T));
        bytes_.append(bytes.data(), bytes.size());
    }
    void text(std::string_view value) {
        number(uint64_t{value.size()});
        bytes_.append(value);
    }
    void scalar(bool value) { number(static_cast<uint8_t>(value)); }
    void scalar(const std::string& value) { text(value); }
    void scalar(const GgufArray& array) {
        number(static_cast<uint32_t>(type_of(array)));
        std::visit(
            [this](const auto& elements) {
                number(uint64_t{elements.size()});
                for (const typename std::decay_t<decltype(elements)>::value_type& element : elements) {
                    scalar(element);
                }
            },
            array);
    }
    template <typename T>
        requires std::is_arithmetic_v<T>
    void scalar(T value) {
        number(value);
    }
    void raw(std::string_view bytes) { bytes_.append(bytes); }
    const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

uint64_t padded(uint64_t size) {
    return (size + written_alignment - 1) / written_alignment * written_alignment;
}

/// The size type and ne call for, or nothing if they make no tensor.
std::optional<uint64_t> tensor_size(ggml_type type, const std::vector<int64_t>& ne) {
    const bool known = type >= 0 && type < GGML_TYPE_COUNT && ggml_blck_size(type) > 0;
    if (!known || ne.size() > GGML_MAX_DIMS || std::ranges::any_of(ne, [](int64_t n) { return n < 0; })) {
        return std::nullopt;
    }
    const int64_t row = ne.empty() ? 1 : ne.front();
    if (row % ggml_blck_size(type) != 0) {
        return std::nullopt;
    }
    auto size = checked_product(static_cast<uint64_t>(row / ggml_blck_size(type)), ggml_type_size(type));
    for (size_t i = 1; i < ne.size() && size; ++i) {
        size = checked_product(*size, static_cast<uint64_t>(ne[i]));
    }
    return size;
}

void write_padding(AtomicFile& file) {
    constexpr std::array<std::byte, written_alignment> zeros{};
    file.write(std::span(zeros).first(padded(file.size()) - file.size()));
}

} // namespace

void GgufWriter::set(std::string key, GgufValue value) {
    if (key.empty()) {
        fail(ErrorCode::invalid_argument, "a GGUF key cannot be empty");
    }
    if (key == alignment_key) {
        value = written_alignment;
    }
    if (const auto it = std::ranges::find(pairs_, key, &GgufPair::key); it != pairs_.end()) {
        it->value = std::move(value);
    } else {
        pairs_.push_back({std::move(key), std::move(value)});
    }
}

void GgufWriter::add(std::string name, ggml_type type, std::vector<int64_t> ne,
                     std::span<const std::byte> data) {
    if (const auto size = tensor_size(type, ne); size && *size != data.size()) {
        fail(ErrorCode::invalid_argument, "tensor '{}': {} bytes of data do not match type {} and ne [{}]",
             printable(name), data.size(), static_cast<int>(type), fmt::join(ne, ", "));
    }
    add(std::move(name), type, std::move(ne), [data](const GgufSink& sink) { sink(data); });
}

void GgufWriter::add(std::string name, ggml_type type, std::vector<int64_t> ne, GgufProducer produce) {
    if (name.empty() || name.size() >= GGML_MAX_NAME) {
        fail(ErrorCode::invalid_argument, "tensor name '{}' has {} bytes, expected 1 to {}", printable(name),
             name.size(), GGML_MAX_NAME - 1);
    }
    if (std::ranges::find(tensors_, name, &Tensor::name) != tensors_.end()) {
        fail(ErrorCode::invalid_argument, "tensor '{}' is added twice", printable(name));
    }
    const auto size = tensor_size(type, ne);
    if (!size) {
        fail(ErrorCode::invalid_argument, "tensor '{}': type {} and ne [{}] make no tensor", printable(name),
             static_cast<int>(type), fmt::join(ne, ", "));
    }
    tensors_.push_back({std::move(name), type, std::move(ne), *size, std::move(produce)});
}

void GgufWriter::write(const std::filesystem::path& path,
                       const std::function<void(size_t written, size_t total)>& progress) const {
    Header header;
    header.raw("GGUF");
    header.number(written_version);
    header.number(uint64_t{tensors_.size()});
    header.number(uint64_t{pairs_.size()});
    for (const auto& [key, value] : pairs_) {
        header.text(key);
        header.number(static_cast<uint32_t>(type_of(value)));
        std::visit([&header](const auto& v) { header.scalar(v); }, value);
    }
    uint64_t offset = 0;
    size_t total = 0;
    for (const Tensor& tensor : tensors_) {
        header.text(tensor.name);
        header.number(static_cast<uint32_t>(tensor.ne.size()));
        for (const int64_t n : tensor.ne) {
            header.number(n);
        }
        header.number(static_cast<uint32_t>(tensor.type));
        header.number(offset);
        offset += padded(tensor.size);
        total += tensor.size;
    }

    AtomicFile file(path);
    file.write(header.bytes());
    write_padding(file);
    size_t written = 0;
    for (const Tensor& tensor : tensors_) {
        const size_t expected = written + tensor.size;
        tensor.produce([&](std::span<const std::byte> piece) {
            file.write(piece);
            written += piece.size();
            if (progress) {
                progress(written, total);
            }
        });
        if (written != expected) {
            fail(ErrorCode::internal, "tensor '{}': {} bytes were produced, expected {}",
                 printable(tensor.name), written + tensor.size - expected, tensor.size);
        }
        write_padding(file);
    }
    file.commit();
}

} // namespace spool
