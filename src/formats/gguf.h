// Reading and writing GGUF files without ever trusting them: every count, length and offset is checked
// against the file's size before it is used, and an error names the file, the field and the byte offset.
// ggml's own reader aborts or allocates on some hostile files, and its messages name neither; this one is
// run over a file before libllama sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ggml.h>

#include "core/file.h"

namespace spool {

/// An array's elements; strings keep the order of the file.
using GgufArray =
    std::variant<std::vector<uint8_t>, std::vector<int8_t>, std::vector<uint16_t>, std::vector<int16_t>,
                 std::vector<uint32_t>, std::vector<int32_t>, std::vector<float>, std::vector<uint64_t>,
                 std::vector<int64_t>, std::vector<double>, std::vector<bool>, std::vector<std::string>>;
using GgufValue = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, uint64_t,
                               int64_t, double, bool, std::string, GgufArray>;

struct GgufPair {
    std::string key;
    GgufValue value;
};

/// A view of one tensor. `ne` in ggml's order, fastest dimension first (the reverse of PyTorch's shape).
struct GgufTensor {
    std::string name;
    ggml_type type = GGML_TYPE_F32;
    std::vector<int64_t> ne;
    std::span<const std::byte> data;

    int64_t elements() const;
};

/// A GGUF file (version 2 or 3, little-endian), mapped. Memory used beyond the mapping is bounded by the
/// size of the header section in the file.
class GgufFile {
  public:
    /// Throws Error{not_found|io|bad_file}.
    explicit GgufFile(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return file_.path(); }
    uint32_t version() const { return version_; }
    const std::vector<GgufPair>& pairs() const { return pairs_; }
    const std::vector<GgufTensor>& tensors() const { return tensors_; }
    size_t file_size() const { return file_.bytes().size(); }
    /// The whole file; tensors' data are views into it.
    std::span<const std::byte> mapping() const { return file_.bytes(); }

    /// nullptr when absent.
    const GgufValue* find(std::string_view key) const;
    const GgufTensor* find_tensor(std::string_view name) const;

    /// Required keys: throw Error{bad_file} naming file, key, and what was found, if absent, of another type
    /// or out of range. Integers of any width are accepted where the value fits.
    std::string string(std::string_view key) const;
    uint32_t u32(std::string_view key) const;
    float f32(std::string_view key) const;
    const std::vector<std::string>& strings(std::string_view key) const;
    std::optional<std::string> optional_string(std::string_view key) const;
    std::optional<uint32_t> optional_u32(std::string_view key) const;

  private:
    MappedFile file_;
    uint32_t version_ = 0;
    std::vector<GgufPair> pairs_;
    std::vector<GgufTensor> tensors_;
};

/// The tensor's elements as float32, dequantised by ggml's traits.
std::vector<float> to_float(const GgufTensor& tensor);

/// Quantises rows of `row_size` floats into `type` (f32, f16, bf16, q8_0, q4_1, ...).
/// Throws Error{invalid_argument} if the row size is not a multiple of the type's block.
std::vector<std::byte> quantize(ggml_type type, std::span<const float> values, int64_t row_size);

/// Receives a tensor's bytes piece by piece, in order.
using GgufSink = std::function<void(std::span<const std::byte>)>;
/// Hands a tensor's bytes to the sink when the file is written: exactly as many as type and ne call for.
using GgufProducer = std::function<void(const GgufSink&)>;

/// Collects pairs and tensors, then writes the file atomically. Tensor data is referenced or produced on
/// demand, not copied: what stands behind it must live until write() returns.
class GgufWriter {
  public:
    /// Sets or replaces `key`.
    void set(std::string key, GgufValue value);
    /// Throws Error{invalid_argument} if data.size() does not match type and ne, or the name is taken.
    void add(std::string name, ggml_type type, std::vector<int64_t> ne, std::span<const std::byte> data);
    /// The same for data that would not fit into memory whole.
    void add(std::string name, ggml_type type, std::vector<int64_t> ne, GgufProducer produce);
    /// Version 3, alignment 32. `progress`, if any, is called after each piece with the bytes of tensor data
    /// written and their total. Throws Error{io}, and what a producer throws; the file appears only when
    /// complete.
    void write(const std::filesystem::path& path,
               const std::function<void(size_t written, size_t total)>& progress = {}) const;

  private:
    struct Tensor {
        std::string name;
        ggml_type type = GGML_TYPE_F32;
        std::vector<int64_t> ne;
        size_t size = 0;
        GgufProducer produce;
    };

    std::vector<GgufPair> pairs_;
    std::vector<Tensor> tensors_;
};

} // namespace spool
