// The stack machine of Python's pickle, reduced to what torch.save writes for a state dict: data opcodes, a
// memo, storages by persistent id, and a fixed list of names that build tensors. Nothing is ever executed.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/torch_values.h"

namespace spool {

class TorchMachine {
  public:
    /// Returns the bytes of the storage with that key, or nothing.
    using StorageLookup = std::function<std::optional<std::span<const std::byte>>(std::string_view key)>;

    /// The bytes behind `pickle` and what `storages` returns must outlive the machine's values.
    TorchMachine(ByteReader pickle, StorageLookup storages)
        : in_(std::move(pickle)), storages_(std::move(storages)) {}

    /// Runs to the STOP opcode and returns the object that was pickled. Throws Error{bad_file}, and
    /// Error{unsupported} for an opcode or a name that a state dict does not need.
    TorchHandle run();
    const TorchValue& at(TorchHandle handle) const { return values_[handle]; }

  private:
    bool step(); // false at STOP
    bool step_data(uint8_t opcode);
    bool step_structure(uint8_t opcode);

    void push(TorchValue value);
    TorchHandle pop();
    template <typename T>
    T& top_as(std::string_view expected);
    template <typename T>
    const T& argument(const TorchSequence& arguments, size_t index, std::string_view what) const;
    std::vector<TorchHandle> pop_to_mark();
    void put(uint32_t slot);
    void get(uint32_t slot);
    void global();
    void tuple(size_t size);
    void set_items(const std::vector<TorchHandle>& flat);
    void persistent_id();
    void reduce();
    void build();
    TorchTensor rebuild_tensor(const TorchSequence& arguments, std::optional<DType> dtype) const;
    std::vector<int64_t> integers(const TorchSequence& sequence, std::string_view what) const;
    int64_t long_integer();
    double big_endian_double();

    ByteReader in_;
    StorageLookup storages_;
    size_t opcode_position_ = 0;
    std::vector<TorchValue> values_;
    std::vector<TorchHandle> stack_;
    std::vector<size_t> marks_; // heights of the stack
    std::unordered_map<uint32_t, TorchHandle> memo_;
};

} // namespace spool
