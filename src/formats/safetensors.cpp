#include "formats/safetensors.h"

#include <algorithm>
#include <functional>
#include <set>

#include "core/error.h"
#include "core/json.h"
#include "formats/byte_reader.h"
#include "formats/safetensors_header.h"

namespace spool {

namespace {

constexpr uint64_t max_header = 100'000'000; // the limit of the format's reference implementation

/// Every entry inside the data section, of the size its shape calls for, one behind the other.
void check_places(const ByteReader& in, const std::vector<SafetensorsEntry>& entries, uint64_t data_size) {
    uint64_t expected = 0;
    for (const SafetensorsEntry& entry : entries) {
        const auto name = printable(entry.name);
        if (entry.begin > entry.end || entry.end > data_size) {
            in.bad(entry.position,
                   "tensor '{}' has the data_offsets [{}, {}] in a data section of {} bytes; the file is "
                   "truncated or damaged",
                   name, entry.begin, entry.end, data_size);
        }
        const auto size = tensor_bytes(entry.dtype, entry.shape);
        if (size != entry.end - entry.begin) {
            in.bad(entry.position, "tensor '{}' of type {} and shape {} has {} bytes, which do not match",
                   name, safetensors_name(entry.dtype), shape_string(entry.shape), entry.end - entry.begin);
        }
        if (entry.begin != expected) {
            in.bad(entry.position,
                   "tensor '{}' begins at offset {}, expected {}: tensors overlap or leave a hole", name,
                   entry.begin, expected);
        }
        expected = entry.end;
    }
    if (expected != data_size) {
        in.bad(in.offset(), "the tensors take {} bytes, but the data section has {}", expected, data_size);
    }
}

Json header_of(const std::vector<const TensorView*>& tensors,
               const std::map<std::string, std::string>& metadata) {
    Json header = Json::object();
    if (!metadata.empty()) {
        header["__metadata__"] = metadata;
    }
    std::set<std::string_view> names = {"__metadata__"};
    uint64_t offset = 0;
    for (const TensorView* tensor : tensors) {
        if (!names.insert(tensor->name).second) {
            fail(ErrorCode::invalid_argument, "tensor '{}' appears twice or has a reserved name",
                 printable(tensor->name));
        }
        if (tensor_bytes(tensor->dtype, tensor->shape) != tensor->data.size()) {
            fail(ErrorCode::invalid_argument, "tensor '{}': {} bytes do not match type {} and shape {}",
                 printable(tensor->name), tensor->data.size(), dtype_name(tensor->dtype),
                 shape_string(tensor->shape));
        }
        header[tensor->name] = {{"dtype", safetensors_name(tensor->dtype)},
                                {"shape", tensor->shape},
                                {"data_offsets", {offset, offset + tensor->data.size()}}};
        offset += tensor->data.size();
    }
    return header;
}

std::string dump(const Json& header) {
    try {
        return header.dump();
    } catch (const Json::type_error& error) {
        fail(ErrorCode::invalid_argument, "a tensor's name or the metadata is not UTF-8: {}",
             printable(error.what()));
    }
}

} // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
    ByteReader in(path.string(), file_.bytes());
    const auto length = in.number<uint64_t>("the header's length");
    if (length > max_header || length > in.remaining()) {
        in.bad(0,
               "the header is said to be {} bytes long, but {} follow and {} are allowed; not a safetensors "
               "file, or a truncated one",
               length, in.remaining(), max_header);
    }
    const size_t position = in.offset();
    auto header = parse_safetensors_header(in.source(), in.take_text(length, "the header"), position);
    std::ranges::sort(header.entries, [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    const auto data = file_.bytes().subspan(in.offset());
    check_places(in, header.entries, data.size());
    tensors_.reserve(header.entries.size());
    for (SafetensorsEntry& entry : header.entries) {
        tensors_.push_back({.name = std::move(entry.name),
                            .dtype = entry.dtype,
                            .shape = std::move(entry.shape),
                            .data = data.subspan(entry.begin, entry.end - entry.begin)});
    }
    metadata_ = std::move(header.metadata);
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
    const auto it = std::ranges::find(tensors_, name, &TensorView::name);
    return it == tensors_.end() ? nullptr : &*it;
}

const TensorView& SafetensorsFile::at(std::string_view name) const {
    const TensorView* tensor = find(name);
    if (tensor == nullptr) {
        fail(ErrorCode::bad_file, "{}: the tensor '{}' is missing", path().string(), name);
    }
    return *tensor;
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata) {
    std::vector<const TensorView*> ordered;
    ordered.reserve(tensors.size());
    for (const TensorView& tensor : tensors) {
        ordered.push_back(&tensor);
    }
    std::ranges::sort(ordered, [](const TensorView* a, const TensorView* b) {
        const size_t size_a = dtype_size(a->dtype);
        const size_t size_b = dtype_size(b->dtype);
        return size_a != size_b ? size_a > size_b : std::less<>()(a, b); // a stable order
    });
    std::string header = dump(header_of(ordered, metadata));
    header.resize((header.size() + 7) / 8 * 8, ' ');

    AtomicFile file(path);
    const uint64_t length = header.size();
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(header);
    for (const TensorView* tensor : ordered) {
        file.write(tensor->data);
    }
    file.commit();
}

} // namespace spool
