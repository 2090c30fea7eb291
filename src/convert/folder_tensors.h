// The tensors of a model folder on their way into a GGUF: each is checked against the shape that config.json
// calls for, and every one of them has to find a place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/hf_weights.h"
#include "convert/model.h"
#include "convert/row_stream.h"

namespace spool {

/// Must live until the writer has written.
class FolderTensors {
  public:
    /// Throws what HfWeights throws.
    explicit FolderTensors(const std::filesystem::path& folder);

    const HfWeights& weights() const { return weights_; }
    ModelReport& report() { return report_; }
    const ModelReport& report() const { return report_; }

    /// Throws Error{bad_file} if there is no such tensor.
    const TensorView& require(const std::string& name) const;
    void check_shape(const std::string& name, std::span<const int64_t> found,
                     const std::vector<int64_t>& expected) const;

    /// `shape` in PyTorch's order, which is checked; `type` must divide the rows (fit()).
    void add(GgufWriter& writer, const std::string& from, const std::string& to, ggml_type type,
             const std::vector<int64_t>& shape, RowOrder order = {});

    /// This tensor needs no place, or has found one.
    void mark_used(const std::string& name) { used_.insert(name); }
    /// Throws Error{unsupported} for a tensor that is neither used nor `ignored`. `model`: "a model of ...".
    void refuse_leftovers(const std::string& model,
                          const std::function<bool(std::string_view)>& ignored) const;

  private:
    HfWeights weights_;
    ModelReport report_;
    std::set<std::string> used_;
};

/// `type` if rows of `cols` values divide into its blocks; else F16, which is counted.
ggml_type fit(ggml_type type, int64_t cols, ModelReport& report);

/// True for the types beside which llama.cpp's own files keep the embedding and the output in 8 bits.
bool is_four_or_five_bit(ggml_type type);

} // namespace spool
