#include "convert/pooler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "convert/source.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/json_file.h"
#include "formats/mlx.h"
#include "formats/safetensors.h"
#include "formats/torch_pickle.h"

namespace spool {

namespace {

constexpr uint32_t upstream_heads = 8;
constexpr std::string_view config_name = "pooler_config.json";
constexpr std::string_view scale_name = "out_scale";

/// A tensor of the source file, float or 4-bit.
struct Weight {
    std::vector<int64_t> shape;
    std::function<std::vector<float>()> read;
};
using WeightMap = std::map<std::string, Weight>;

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> suffixes) {
    return std::ranges::any_of(suffixes, [&](std::string_view suffix) { return name.ends_with(suffix); });
}

Weight plain(const TensorView& tensor) {
    return {.shape = tensor.shape, .read = [tensor] { return to_float(tensor); }};
}

/// Every tensor under its own name; the three parts of a 4-bit matrix appear as one, under the name of its
/// codes.
WeightMap weights_of(const SafetensorsFile& file) {
    WeightMap weights;
    for (const TensorView& tensor : file.tensors()) {
        if (ends_with_any(tensor.name, {".scales", ".biases"})) {
            continue;
        }
        if (tensor.dtype != DType::u32) {
            weights.emplace(tensor.name, plain(tensor));
            continue;
        }
        std::string stem = tensor.name;
        auto matrix = find_mlx_matrix(file, stem);
        if (constexpr std::string_view suffix = ".weight"; !matrix && stem.ends_with(suffix)) {
            stem.resize(stem.size() - suffix.size());
            matrix = find_mlx_matrix(file, stem);
        }
        if (!matrix) {
            fail(ErrorCode::bad_file, "{}: tensor '{}' is u32, but has no '.scales' and '.biases' beside it",
                 file.path().string(), tensor.name);
        }
        weights.emplace(tensor.name, Weight{.shape = {matrix->rows, matrix->cols},
                                            .read = [matrix = *matrix] { return dequantize(matrix); }});
    }
    return weights;
}

WeightMap weights_of(const TorchPickleFile& file) {
    WeightMap weights;
    for (const TensorView& tensor : file.tensors()) {
        weights.emplace(tensor.name, plain(tensor));
    }
    return weights;
}

const Weight& require(const std::string& source, const WeightMap& weights, const std::string& name,
                      size_t dimensions) {
    const auto it = weights.find(name);
    if (it == weights.end()) {
        fail(ErrorCode::bad_file, "{}: tensor '{}' is missing; not an AttnPoolSP pooler", source, name);
    }
    if (it->second.shape.size() != dimensions) {
        fail(ErrorCode::bad_file, "{}: tensor '{}' has shape {}, expected {} dimensions", source, name,
             shape_string(it->second.shape), dimensions);
    }
    return it->second;
}

uint32_t dimension(const std::string& source, const std::string& name, int64_t value) {
    constexpr int64_t limit = 1 << 24;
    if (value <= 0 || value > limit) {
        fail(ErrorCode::bad_file, "{}: tensor '{}' has a dimension of {}, expected 1 to {}", source, name,
             value, limit);
    }
    return static_cast<uint32_t>(value);
}

/// All but the heads.
PoolerShape shape_of(const std::string& source, const WeightMap& weights) {
    const Weight& query = require(source, weights, "query", 2);
    const Weight& ffn = require(source, weights, "blocks.0.ffn.0.weight", 2);
    PoolerShape shape;
    shape.n_sp = dimension(source, "query", query.shape[0]);
    shape.hidden = dimension(source, "query", query.shape[1]);
    shape.ffn = dimension(source, "blocks.0.ffn.0.weight", ffn.shape[0]);
    while (weights.contains("blocks." + std::to_string(shape.layers) + ".ffn.0.weight")) {
        ++shape.layers;
    }
    return shape;
}

/// Throws unless the config's field, where stated, is what the tensors say.
void check_agrees(const JsonFields& config, std::string_view field, uint32_t found,
                  const std::string& source) {
    if (const auto stated = config.optional_u32(field); stated && *stated != found) {
        fail(ErrorCode::bad_file,
             "{}: field '{}' is {}, but the tensors of {} say {}; they belong to two poolers",
             config.source(), field, *stated, source, found);
    }
}

std::optional<JsonFields> config_beside(const std::filesystem::path& source) {
    const auto path = source.parent_path() / config_name;
    return std::filesystem::exists(path) ? std::optional(read_json_file(path)) : std::nullopt;
}

uint32_t choose_heads(const std::optional<JsonFields>& config, std::optional<uint32_t> asked) {
    const auto stated = config ? config->optional_u32("heads") : std::nullopt;
    if (stated && asked && *stated != *asked) {
        fail(ErrorCode::invalid_argument, "{}: field 'heads' is {}, but {} heads were asked for",
             config->source(), *stated, *asked);
    }
    return stated ? *stated : asked.value_or(upstream_heads);
}

float scale_tensor(const std::string& source, const Weight& weight) {
    const auto values = weight.read();
    if (values.size() != 1) {
        fail(ErrorCode::bad_file, "{}: tensor '{}' has shape {}, expected one value", source, scale_name,
             shape_string(weight.shape));
    }
    return values[0];
}

/// The tensor wins: the config may hold it before it was rounded to the tensor's type.
float choose_scale(const std::string& source, const WeightMap& weights,
                   const std::optional<JsonFields>& config) {
    const bool stated = config && config->find(scale_name) != nullptr;
    const auto tensor = weights.find(std::string(scale_name));
    if (tensor == weights.end()) {
        if (!stated) {
            fail(ErrorCode::bad_file, "{}: neither a tensor nor a field of {} gives '{}'", source,
                 config_name, scale_name);
        }
        return static_cast<float>(config->number(scale_name));
    }
    const float value = scale_tensor(source, tensor->second);
    constexpr double rounding = 4e-3; // of bf16
    if (stated && std::abs(config->number(scale_name) - value) > rounding * std::abs(value)) {
        fail(ErrorCode::bad_file, "{}: field '{}' is {}, but the tensor of {} holds {}", config->source(),
             scale_name, config->number(scale_name), source, value);
    }
    return value;
}

void read_tensors(const std::string& source, const WeightMap& weights, PoolerWeights& pooler) {
    std::set<std::string> expected = {std::string(scale_name)};
    for (const auto& [name, shape] : pooler_tensors(pooler.shape)) {
        const Weight& weight = require(source, weights, name, shape.size());
        if (weight.shape != shape) {
            fail(ErrorCode::bad_file, "{}: tensor '{}' has shape {}, expected {}", source, name,
                 shape_string(weight.shape), shape_string(shape));
        }
        expected.insert(name);
    }
    for (const auto& [name, weight] : weights) {
        if (!expected.contains(name)) {
            fail(ErrorCode::bad_file, "{}: tensor '{}' is no part of a pooler of {} layers", source, name,
                 pooler.shape.layers);
        }
    }
    for (const auto& [name, shape] : pooler_tensors(pooler.shape)) {
        pooler.tensors.emplace(name, weights.at(name).read());
    }
}

PoolerWeights import_weights(const std::filesystem::path& path, const WeightMap& weights,
                             std::optional<uint32_t> heads) {
    const std::string source = path.string();
    const auto config = config_beside(path);
    PoolerWeights pooler;
    pooler.shape = shape_of(source, weights);
    pooler.shape.heads = choose_heads(config, heads);
    if (config) {
        check_agrees(*config, "hidden_dim", pooler.shape.hidden, source);
        check_agrees(*config, "num_soft_tokens", pooler.shape.n_sp, source);
        check_agrees(*config, "layers", pooler.shape.layers, source);
        check_agrees(*config, "ffn", pooler.shape.ffn, source);
    }
    pooler.out_scale = choose_scale(source, weights, config);
    read_tensors(source, weights, pooler);
    check(pooler, source);
    return pooler;
}

} // namespace

PoolerWeights import_pooler(const std::filesystem::path& source, std::optional<uint32_t> heads) {
    switch (const auto kind = detect_source(source)) {
    case SourceKind::pooler_safetensors: {
        const SafetensorsFile file(source);
        return import_weights(source, weights_of(file), heads);
    }
    case SourceKind::pooler_torch: {
        const TorchPickleFile file(source);
        return import_weights(source, weights_of(file), heads);
    }
    default:
        fail(ErrorCode::bad_file, "{}: is a {}, expected a pooler", source.string(), to_string(kind));
    }
}

void export_pooler(const PoolerWeights& pooler, const std::filesystem::path& path) {
    std::vector<TensorView> views;
    for (const auto& [name, shape] : pooler_tensors(pooler.shape)) {
        views.push_back({.name = name,
                         .dtype = DType::f32,
                         .shape = shape,
                         .data = std::as_bytes(std::span(pooler.tensors.at(name)))});
    }
    views.push_back({.name = std::string(scale_name),
                     .dtype = DType::f32,
                     .shape = {},
                     .data = std::as_bytes(std::span(&pooler.out_scale, 1))});
    write_safetensors(path, views);
    const Json config = {{"hidden_dim", pooler.shape.hidden}, {"num_soft_tokens", pooler.shape.n_sp},
                         {"heads", pooler.shape.heads},       {"layers", pooler.shape.layers},
                         {"ffn", pooler.shape.ffn},           {"out_scale", pooler.out_scale}};
    write_text(path.parent_path() / config_name, config.dump(1) + "\n");
}

} // namespace spool
