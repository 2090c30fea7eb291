// AttnPoolSP's weights and the file that holds them, pooler.gguf (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ggml.h>

#include "formats/model_identity.h"

namespace spool {

/// The KV layout a bundle was trained for; see docs/design of the strategies.
enum class Layout { rebuild, carry };

std::string_view to_string(Layout layout);
/// Throws Error{invalid_argument}, naming the text and the two accepted values.
Layout layout_from_string(std::string_view text);

/// Upstream: hidden 1536, n_sp 32, heads 8, layers 3, ffn 2048.
struct PoolerShape {
    uint32_t hidden = 0;
    uint32_t n_sp = 0;
    uint32_t heads = 0;
    uint32_t layers = 0;
    uint32_t ffn = 0;

    bool operator==(const PoolerShape&) const = default;
};

/// The settings a pooler was trained with; 0 means not recorded.
struct TrainedSettings {
    uint32_t rw = 0;
    uint32_t chunk = 0;
    uint32_t max_distant = 0;
    uint32_t max_position = 0;
    Layout layout = Layout::rebuild;

    bool operator==(const TrainedSettings&) const = default;
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
