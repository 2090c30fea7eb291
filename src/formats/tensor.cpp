#include "formats/tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/ranges.h>
#include <ggml.h>

#include "core/error.h"
#include "formats/byte_reader.h"

namespace spool {

namespace {

struct DTypeInfo {
    std::string_view name;
    size_t size;
};

const DTypeInfo& info(DType dtype) {
    static constexpr std::array<DTypeInfo, 12> table = {{{"f64", 8},
                                                         {"f32", 4},
                                                         {"f16", 2},
                                                         {"bf16", 2},
                                                         {"i64", 8},
                                                         {"i32", 4},
                                                         {"i16", 2},
                                                         {"i8", 1},
                                                         {"u32", 4},
                                                         {"u16", 2},
                                                         {"u8", 1},
                                                         {"bool", 1}}};
    return table.at(static_cast<size_t>(dtype));
}

/// Files promise no alignment, so elements are copied out before they are converted.
template <typename T, typename Convert>
std::vector<float> convert_all(std::span<const std::byte> data, Convert convert) {
    std::vector<float> values(data.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
        T element;
        std::memcpy(&element, data.data() + i * sizeof(T), sizeof(T));
        values[i] = convert(element);
    }
    return values;
}

} // namespace

size_t dtype_size(DType dtype) { return info(dtype).size; }

std::string_view dtype_name(DType dtype) { return info(dtype).name; }

std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape) {
    std::optional<uint64_t> size = dtype_size(dtype);
    for (const int64_t n : shape) {
        if (n < 0 || !size) {
            return std::nullopt;
        }
        size = checked_product(*size, static_cast<uint64_t>(n));
    }
    return size;
}

size_t TensorView::elements() const { return data.size() / dtype_size(dtype); }

std::vector<float> to_float(const TensorView& tensor) {
    switch (tensor.dtype) {
    case DType::f64:
        return convert_all<double>(tensor.data, [](double v) { return static_cast<float>(v); });
    case DType::f32:
        return convert_all<float>(tensor.data, [](float v) { return v; });
    case DType::f16:
        return convert_all<ggml_fp16_t>(tensor.data, [](ggml_fp16_t v) { return ggml_fp16_to_fp32(v); });
    case DType::bf16:
        return convert_all<uint16_t>(tensor.data,
                                     [](uint16_t v) { return std::bit_cast<float>(uint32_t{v} << 16); });
    default:
        fail(ErrorCode::unsupported, "tensor '{}' holds {}, expected a floating-point type",
             printable(tensor.name), dtype_name(tensor.dtype));
    }
}

std::string shape_string(std::span<const int64_t> shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

} // namespace spool
