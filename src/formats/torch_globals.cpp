#include <algorithm>
#include <array>

#include "formats/torch_values.h"

namespace spool {

namespace {

struct KnownGlobal {
    std::string_view module;
    std::string_view name;
    TorchGlobal value;
};

constexpr std::array<KnownGlobal, 29> known_globals = {{
    {"collections", "OrderedDict", {TorchName::ordered_dict, {}}},
    {"torch._utils", "_rebuild_tensor_v2", {TorchName::rebuild_tensor_v2, {}}},
    {"torch._utils", "_rebuild_tensor_v3", {TorchName::rebuild_tensor_v3, {}}},
    {"torch._utils", "_rebuild_parameter", {TorchName::rebuild_parameter, {}}},
    {"torch", "Size", {TorchName::size, {}}},
    {"torch.storage", "UntypedStorage", {TorchName::storage, {}}},
    {"torch", "UntypedStorage", {TorchName::storage, {}}},
    {"torch", "DoubleStorage", {TorchName::storage, DType::f64}},
    {"torch", "FloatStorage", {TorchName::storage, DType::f32}},
    {"torch", "HalfStorage", {TorchName::storage, DType::f16}},
    {"torch", "BFloat16Storage", {TorchName::storage, DType::bf16}},
    {"torch", "LongStorage", {TorchName::storage, DType::i64}},
    {"torch", "IntStorage", {TorchName::storage, DType::i32}},
    {"torch", "ShortStorage", {TorchName::storage, DType::i16}},
    {"torch", "CharStorage", {TorchName::storage, DType::i8}},
    {"torch", "ByteStorage", {TorchName::storage, DType::u8}},
    {"torch", "BoolStorage", {TorchName::storage, DType::boolean}},
    {"torch", "float64", {TorchName::dtype, DType::f64}},
    {"torch", "float32", {TorchName::dtype, DType::f32}},
    {"torch", "float16", {TorchName::dtype, DType::f16}},
    {"torch", "bfloat16", {TorchName::dtype, DType::bf16}},
    {"torch", "int64", {TorchName::dtype, DType::i64}},
    {"torch", "int32", {TorchName::dtype, DType::i32}},
    {"torch", "int16", {TorchName::dtype, DType::i16}},
    {"torch", "int8", {TorchName::dtype, DType::i8}},
    {"torch", "uint32", {TorchName::dtype, DType::u32}},
    {"torch", "uint16", {TorchName::dtype, DType::u16}},
    {"torch", "uint8", {TorchName::dtype, DType::u8}},
    {"torch", "bool", {TorchName::dtype, DType::boolean}},
}};

} // namespace

const TorchGlobal* find_torch_global(std::string_view module, std::string_view name) {
    const auto* const it = std::ranges::find_if(
        known_globals, [&](const KnownGlobal& g) { return g.module == module && g.name == name; });
    return it == known_globals.end() ? nullptr : &it->value;
}

} // namespace spool
