// The tensors of a Hugging Face or MLX model folder, however many safetensors files they are spread over.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/mlx.h"
#include "formats/safetensors.h"

namespace spool {

class HfWeights {
  public:
    /// Opens what model.safetensors.index.json names, else model.safetensors. Throws
    /// Error{not_found|bad_file} for a missing shard, a tensor the index names in vain, and a tensor that two
    /// shards hold.
    explicit HfWeights(const std::filesystem::path& folder);

    const std::map<std::string, const TensorView*, std::less<>>& tensors() const { return tensors_; }
    /// nullptr when absent.
    const TensorView* find(std::string_view name) const;

    /// The matrix whose codes are `module`.weight; nothing if it is not quantised. The three parts may lie in
    /// different shards. Throws Error{bad_file} if they disagree with each other or with `group`.
    std::optional<MlxMatrix> find_mlx(const std::string& module, uint32_t group) const;

    /// "FOLDER: tensor 'NAME'", for messages.
    std::string describe(std::string_view name) const;

  private:
    std::filesystem::path folder_;
    std::deque<SafetensorsFile> files_;
    std::map<std::string, const TensorView*, std::less<>> tensors_;
};

} // namespace spool
