// AttnPoolSP's weights and the file that holds them, pooler.gguf (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ggml.h>

#include "pooler/origin.h"

namespace spool {

/// Upstream: hidden 1536, n_sp 32, heads 8, layers 3, ffn 2048.
struct PoolerShape {
    uint32_t hidden = 0;
    uint32_t n_sp = 0;
    uint32_t heads = 0;
    uint32_t layers = 0;
    uint32_t ffn = 0;

    bool operator==(const PoolerShape&) const = default;
};

/// All float32, row-major, under upstream's names (design: "query", "blocks.0.cross.in_proj_weight", ...).
struct PoolerWeights {
    PoolerShape shape;
    float out_scale = 1.0F;
    std::map<std::string, std::vector<float>> tensors;
};

struct PoolerFile {
    PoolerWeights weights;
    BaseIdentity base;
    TrainedSettings trained;
};

/// Every tensor a pooler of this shape has, with its PyTorch shape. `out_scale` is not among them: it is a
/// key of pooler.gguf and a 0- or 1-element tensor upstream.
std::vector<std::pair<std::string, std::vector<int64_t>>> pooler_tensors(const PoolerShape& shape);

/// Throws Error{bad_file} if a dimension is zero or absurd, heads does not divide hidden, a tensor is
/// missing, unexpected or of another size, or a value is not finite. `source` names the file in messages.
void check(const PoolerWeights& weights, const std::string& source);

/// Throws Error{not_found|bad_file}, naming file and field.
PoolerFile read_pooler(const std::filesystem::path& path);
/// `type`: GGML_TYPE_F32, F16 or Q8_0 for the matrices; vectors and the query stay F32.
void write_pooler(const std::filesystem::path& path, const PoolerFile& pooler, ggml_type type);

} // namespace spool
