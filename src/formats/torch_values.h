// What the pickle of a PyTorch state dict can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/tensor.h"

namespace spool {

/// Index of a value in the machine that made it: values refer to one another by handle, so that sharing costs
/// nothing and nesting needs no recursion.
using TorchHandle = uint32_t;

/// The names a pickle may refer to, each of them understood, none of them called.
enum class TorchName {
    ordered_dict,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_parameter,
    size,
    storage,
    dtype
};

struct TorchGlobal {
    TorchName name;
    std::optional<DType> dtype; ///< of a storage or dtype; nothing for UntypedStorage
};

/// The known global of that name, or nullptr: a pickle may use no other.
const TorchGlobal* find_torch_global(std::string_view module, std::string_view name);

struct TorchSequence { ///< a tuple or a list
    std::vector<TorchHandle> items;
};

struct TorchDict {
    std::vector<std::pair<TorchHandle, TorchHandle>> items;
};

struct TorchStorage {
    std::optional<DType> dtype; ///< nothing if untyped
    std::span<const std::byte> data;
};

struct TorchTensor {
    DType dtype;
    std::vector<int64_t> shape;
    bool contiguous;
    std::span<const std::byte> data; ///< empty unless contiguous
};

using TorchValue = std::variant<std::monostate, bool, int64_t, double, std::string_view, TorchGlobal,
                                TorchSequence, TorchDict, TorchStorage, TorchTensor>;

} // namespace spool
