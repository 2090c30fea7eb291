#include "formats/torch_machine.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/error.h"

namespace spool {

namespace {

/// Values, stack and memo each stay below this: room for some 50,000 tensors, and a bound on memory.
constexpr size_t max_values = size_t{1} << 20;
constexpr size_t max_pickle = size_t{32} << 20;

enum Opcode : uint8_t {
    op_mark = '(',
    op_stop = '.',
    op_bin_get = 'h',
    op_bin_int = 'J',
    op_bin_int1 = 'K',
    op_bin_int2 = 'M',
    op_long_bin_get = 'j',
    op_none = 'N',
    op_bin_persid = 'Q',
    op_reduce = 'R',
    op_bin_unicode = 'X',
    op_append = 'a',
    op_build = 'b',
    op_global = 'c',
    op_appends = 'e',
    op_bin_float = 'G',
    op_bin_put = 'q',
    op_long_bin_put = 'r',
    op_set_item = 's',
    op_tuple = 't',
    op_set_items = 'u',
    op_empty_tuple = ')',
    op_empty_list = ']',
    op_empty_dict = '}',
    op_proto = 0x80,
    op_tuple1 = 0x85,
    op_tuple2 = 0x86,
    op_tuple3 = 0x87,
    op_new_true = 0x88,
    op_new_false = 0x89,
    op_long1 = 0x8a,
};

} // namespace

TorchHandle TorchMachine::run() {
    if (in_.remaining() > max_pickle) {
        in_.bad(0, "the pickle has {} bytes, expected at most {}", in_.remaining(), max_pickle);
    }
    while (step()) {
    }
    if (stack_.size() != 1 || !marks_.empty() || in_.remaining() != 0) {
        in_.bad(opcode_position_,
                "the pickle ends with {} objects on its stack and {} bytes left, expected 1 "
                "and 0",
                stack_.size(), in_.remaining());
    }
    return stack_.front();
}

bool TorchMachine::step() {
    opcode_position_ = in_.offset();
    const auto opcode = in_.number<uint8_t>("an opcode");
    if (opcode == op_stop) {
        return false;
    }
    if (!step_data(opcode) && !step_structure(opcode)) {
        fail(ErrorCode::unsupported,
             "{}: byte {}: pickle opcode 0x{:02x} has no place in a state dict saved by torch.save with its "
             "default protocol 2; nothing was executed",
             in_.source(), opcode_position_, opcode);
    }
    return true;
}

bool TorchMachine::step_data(uint8_t opcode) {
    switch (opcode) {
    case op_proto:
        if (const auto version = in_.number<uint8_t>("the protocol"); version != 2) {
            fail(ErrorCode::unsupported,
                 "{}: byte {}: pickle protocol {}, expected 2; save again with torch.save's default protocol",
                 in_.source(), opcode_position_, version);
        }
        return true;
    case op_none:
        push(std::monostate{});
        return true;
    case op_new_true:
        push(true);
        return true;
    case op_new_false:
        push(false);
        return true;
    case op_bin_int:
        push(int64_t{in_.number<int32_t>("an integer")});
        return true;
    case op_bin_int1:
        push(int64_t{in_.number<uint8_t>("an integer")});
        return true;
    case op_bin_int2:
        push(int64_t{in_.number<uint16_t>("an integer")});
        return true;
    case op_long1:
        push(long_integer());
        return true;
    case op_bin_float:
        push(big_endian_double());
        return true;
    case op_bin_unicode: {
        const auto length = in_.number<uint32_t>("a string's length");
        push(in_.take_text(length, "a string"));
        return true;
    }
    case op_global:
        global();
        return true;
    default:
        return false;
    }
}

bool TorchMachine::step_structure(uint8_t opcode) {
    switch (opcode) {
    case op_mark:
        if (marks_.size() == max_values) {
            in_.bad(opcode_position_, "more than {} marks", max_values);
        }
        marks_.push_back(stack_.size());
        return true;
    case op_empty_tuple:
    case op_empty_list:
        push(TorchSequence{});
        return true;
    case op_empty_dict:
        push(TorchDict{});
        return true;
    case op_tuple1:
    case op_tuple2:
    case op_tuple3:
        tuple(opcode - op_tuple1 + size_t{1});
        return true;
    case op_tuple:
        push(TorchSequence{pop_to_mark()});
        return true;
    case op_append: {
        const TorchHandle item = pop();
        top_as<TorchSequence>("a list").items.push_back(item);
        return true;
    }
    case op_appends: {
        const auto items = pop_to_mark();
        auto& list = top_as<TorchSequence>("a list").items;
        list.insert(list.end(), items.begin(), items.end());
        return true;
    }
    case op_set_item: {
        const TorchHandle value = pop();
        const TorchHandle key = pop();
        set_items({key, value});
        return true;
    }
    case op_set_items:
        set_items(pop_to_mark());
        return true;
    case op_bin_put:
        put(in_.number<uint8_t>("a memo slot"));
        return true;
    case op_long_bin_put:
        put(in_.number<uint32_t>("a memo slot"));
        return true;
    case op_bin_get:
        get(in_.number<uint8_t>("a memo slot"));
        return true;
    case op_long_bin_get:
        get(in_.number<uint32_t>("a memo slot"));
        return true;
    case op_bin_persid:
        persistent_id();
        return true;
    case op_reduce:
        reduce();
        return true;
    case op_build:
        build();
        return true;
    default:
        return false;
    }
}

void TorchMachine::push(TorchValue value) {
    if (values_.size() == max_values || stack_.size() == max_values) {
        in_.bad(opcode_position_, "the pickle makes more than {} objects", max_values);
    }
    stack_.push_back(static_cast<TorchHandle>(values_.size()));
    values_.push_back(std::move(value));
}

TorchHandle TorchMachine::pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
        in_.bad(opcode_position_, "the pickle takes an object from an empty stack");
    }
    const TorchHandle handle = stack_.back();
    stack_.pop_back();
    return handle;
}

template <typename T>
T& TorchMachine::top_as(std::string_view expected) {
    const TorchHandle handle = pop();
    stack_.push_back(handle);
    auto* value = std::get_if<T>(&values_[handle]);
    if (value == nullptr) {
        in_.bad(opcode_position_, "the pickle treats another object as {}", expected);
    }
    return *value;
}

std::vector<TorchHandle> TorchMachine::pop_to_mark() {
    if (marks_.empty()) {
        in_.bad(opcode_position_, "the pickle returns to a mark it never set");
    }
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<TorchHandle> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
}

void TorchMachine::put(uint32_t slot) {
    const TorchHandle handle = pop();
    stack_.push_back(handle);
    memo_[slot] = handle;
    if (memo_.size() > max_values) {
        in_.bad(opcode_position_, "the pickle remembers more than {} objects", max_values);
    }
}

void TorchMachine::get(uint32_t slot) {
    const auto it = memo_.find(slot);
    if (it == memo_.end()) {
        in_.bad(opcode_position_, "the pickle recalls memo slot {}, which it never filled", slot);
    }
    if (stack_.size() == max_values) {
        in_.bad(opcode_position_, "the pickle stacks more than {} objects", max_values);
    }
    stack_.push_back(it->second);
}

void TorchMachine::tuple(size_t size) {
    std::vector<TorchHandle> items(size);
    for (size_t i = size; i-- > 0;) {
        items[i] = pop();
    }
    push(TorchSequence{std::move(items)});
}

void TorchMachine::set_items(const std::vector<TorchHandle>& flat) {
    if (flat.size() % 2 != 0) {
        in_.bad(opcode_position_, "a dict gets a key without a value");
    }
    auto& dict = top_as<TorchDict>("a dict").items;
    for (size_t i = 0; i < flat.size(); i += 2) {
        dict.emplace_back(flat[i], flat[i + 1]);
    }
}

/// An OrderedDict's attributes (a state dict's `_metadata`) follow it; they say nothing about the tensors.
void TorchMachine::build() {
    pop();
    top_as<TorchDict>("an OrderedDict");
}

int64_t TorchMachine::long_integer() {
    const auto bytes = in_.take(in_.number<uint8_t>("an integer's length"), "an integer");
    if (bytes.size() > sizeof(int64_t)) {
        in_.bad(opcode_position_, "an integer of {} bytes, expected at most 8", bytes.size());
    }
    const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
    int64_t value = negative ? -1 : 0;
    if (!bytes.empty()) {
        std::memcpy(&value, bytes.data(), bytes.size());
    }
    return value;
}

double TorchMachine::big_endian_double() {
    std::array<std::byte, sizeof(double)> bytes{};
    std::ranges::reverse_copy(in_.take(bytes.size(), "a number"), bytes.begin());
    return std::bit_cast<double>(bytes);
}

} // namespace spool
