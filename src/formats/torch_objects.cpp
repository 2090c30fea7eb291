// The part of the machine that knows torch: which names a pickle may use and what they make.
#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "formats/torch_machine.h"

namespace spool {

namespace {

constexpr size_t max_dimensions = 8;

/// True if `stride` is that of a row-major tensor without gaps.
bool is_contiguous(const std::vector<int64_t>& shape, const std::vector<int64_t>& stride) {
    if (std::ranges::find(shape, 0) != shape.end()) {
        return true;
    }
    uint64_t expected = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        if (shape[i] != 1 && !std::cmp_equal(stride[i], expected)) {
            return false;
        }
        expected *= static_cast<uint64_t>(shape[i]);
    }
    return true;
}

} // namespace

template <typename T>
const T& TorchMachine::argument(const TorchSequence& arguments, size_t index, std::string_view what) const {
    const T* value =
        index < arguments.items.size() ? std::get_if<T>(&values_[arguments.items[index]]) : nullptr;
    if (value == nullptr) {
        in_.bad(opcode_position_, "argument {} is missing or not {}", index, what);
    }
    return *value;
}

void TorchMachine::global() {
    const auto line = [this] {
        const size_t start = in_.offset();
        ByteReader ahead = in_;
        while (ahead.number<char>("a global's name") != '\n') {
        }
        const auto text = in_.take_text(ahead.offset() - start, "a global's name");
        return text.substr(0, text.size() - 1);
    };
    const std::string_view module = line();
    const std::string_view name = line();
    const TorchGlobal* known = find_torch_global(module, name);
    if (known == nullptr) {
        fail(ErrorCode::unsupported,
             "{}: byte {}: the pickle refers to '{}.{}', which is no part of a state dict; nothing was "
             "executed. If you trust the file, load it in PyTorch and save model.state_dict() alone.",
             in_.source(), opcode_position_, printable(module), printable(name));
    }
    push(*known);
}

/// A storage: ("storage", type, key, device, number of elements), of an untyped one the number of bytes.
void TorchMachine::persistent_id() {
    const auto* id = std::get_if<TorchSequence>(&values_[pop()]);
    if (id == nullptr || id->items.size() != 5 ||
        argument<std::string_view>(*id, 0, "a string") != "storage") {
        in_.bad(opcode_position_, "a persistent id is not that of a storage");
    }
    const auto type = argument<TorchGlobal>(*id, 1, "a storage type");
    const auto key = argument<std::string_view>(*id, 2, "a storage key");
    const auto elements = argument<int64_t>(*id, 4, "a number of elements");
    if (type.name != TorchName::storage) {
        in_.bad(opcode_position_, "storage '{}' has no storage type", printable(key));
    }
    const auto data = storages_(key);
    if (!data) {
        in_.bad(opcode_position_, "storage '{}' is not in the archive", printable(key));
    }
    const auto size = tensor_bytes(type.dtype.value_or(DType::u8), std::array{elements});
    if (size != data->size()) {
        in_.bad(opcode_position_, "storage '{}' is said to hold {} elements, which do not match its {} bytes",
                printable(key), elements, data->size());
    }
    push(TorchStorage{type.dtype, *data});
}

void TorchMachine::reduce() {
    const TorchHandle argument_handle = pop();
    const TorchHandle function_handle = pop();
    const auto* function = std::get_if<TorchGlobal>(&values_[function_handle]);
    const auto* arguments = std::get_if<TorchSequence>(&values_[argument_handle]);
    if (function == nullptr || arguments == nullptr) {
        in_.bad(opcode_position_, "REDUCE needs a global and a tuple");
    }
    switch (function->name) {
    case TorchName::ordered_dict:
        if (!arguments->items.empty()) {
            in_.bad(opcode_position_, "OrderedDict is made with {} arguments, expected none",
                    arguments->items.size());
        }
        push(TorchDict{});
        return;
    case TorchName::size:
        argument<TorchSequence>(*arguments, 0, "a tuple");
        stack_.push_back(arguments->items.front());
        return;
    case TorchName::rebuild_parameter:
        argument<TorchTensor>(*arguments, 0, "a tensor");
        stack_.push_back(arguments->items.front());
        return;
    case TorchName::rebuild_tensor_v2:
        push(rebuild_tensor(*arguments, std::nullopt));
        return;
    case TorchName::rebuild_tensor_v3: {
        const auto& type = argument<TorchGlobal>(*arguments, 6, "a dtype");
        if (type.name != TorchName::dtype) {
            in_.bad(opcode_position_, "argument 6 is not a dtype");
        }
        push(rebuild_tensor(*arguments, type.dtype));
        return;
    }
    case TorchName::storage:
    case TorchName::dtype:
        break;
    }
    in_.bad(opcode_position_, "the pickle calls a type that builds nothing");
}

/// Arguments: storage, offset in elements, shape, stride, requires_grad, backward hooks[, dtype][, metadata].
TorchTensor TorchMachine::rebuild_tensor(const TorchSequence& arguments, std::optional<DType> dtype) const {
    const auto& storage = argument<TorchStorage>(arguments, 0, "a storage");
    const auto offset = argument<int64_t>(arguments, 1, "an offset");
    const auto stride = integers(argument<TorchSequence>(arguments, 3, "a stride"), "stride");
    const auto type = dtype ? dtype : storage.dtype;
    if (!type) {
        in_.bad(opcode_position_, "a tensor over an untyped storage has no dtype");
    }
    TorchTensor tensor{.dtype = *type,
                       .shape = integers(argument<TorchSequence>(arguments, 2, "a shape"), "shape"),
                       .contiguous = false,
                       .data = {}};
    if (stride.size() != tensor.shape.size()) {
        in_.bad(opcode_position_, "a tensor has {} dimensions and {} strides", tensor.shape.size(),
                stride.size());
    }
    const auto size = tensor_bytes(tensor.dtype, tensor.shape);
    const auto begin = tensor_bytes(tensor.dtype, std::array{offset});
    tensor.contiguous = size.has_value() && is_contiguous(tensor.shape, stride);
    if (!size || !begin || *begin > storage.data.size() ||
        (tensor.contiguous && *size > storage.data.size() - *begin)) {
        in_.bad(opcode_position_, "a tensor of shape {} at element {} is outside its storage of {} bytes",
                shape_string(tensor.shape), offset, storage.data.size());
    }
    if (tensor.contiguous) {
        tensor.data = storage.data.subspan(*begin, *size);
    }
    return tensor;
}

std::vector<int64_t> TorchMachine::integers(const TorchSequence& sequence, std::string_view what) const {
    if (sequence.items.size() > max_dimensions) {
        in_.bad(opcode_position_, "a tensor's {} has {} dimensions, expected at most {}", what,
                sequence.items.size(), max_dimensions);
    }
    std::vector<int64_t> values(sequence.items.size());
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = argument<int64_t>(sequence, i, "an integer");
    }
    return values;
}

} // namespace spool
