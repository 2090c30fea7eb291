#include "pooler/weights.h"

#include <algorithm>
#include <bit>
#include <span>

#include "core/error.h"
#include "formats/gguf.h"
#include "formats/tensor.h"

namespace spool {
namespace {

constexpr const char* architecture = "spool-pooler";
constexpr uint32_t format_version = 1;
constexpr const char* embedding_source = "embedding";

/// Far above any pooler that makes sense, and low enough that no product of two overflows.
struct Limit {
    const char* name;
    uint32_t PoolerShape::* field;
    uint32_t most;
};
constexpr Limit limits[] = {{"hidden", &PoolerShape::hidden, 1U << 16U},
                            {"n_sp", &PoolerShape::n_sp, 1U << 12U},
                            {"heads", &PoolerShape::heads, 1U << 10U},
                            {"layers", &PoolerShape::layers, 1U << 8U},
                            {"ffn", &PoolerShape::ffn, 1U << 18U}};

void check_shape(const PoolerShape& shape, const std::string& source) {
    for (const Limit& limit : limits) {
        const uint32_t value = shape.*limit.field;
        if (value == 0 || value > limit.most) {
            fail(ErrorCode::bad_file, "{}: the pooler's {} is {}, expected 1 to {}", source, limit.name,
                 value, limit.most);
        }
    }
    if (shape.hidden % shape.heads != 0) {
        fail(ErrorCode::bad_file, "{}: the pooler's {} heads do not divide its hidden width {}", source,
             shape.heads, shape.hidden);
    }
}

size_t elements(std::span<const int64_t> shape) {
    size_t product = 1;
    for (const int64_t size : shape) {
        product *= static_cast<size_t>(size);
    }
    return product;
}

/// Infinities and NaN are the floats whose exponent bits are all ones; an integer maximum finds them fast.
void check_finite(std::span<const float> values, const std::string& name, const std::string& source) {
    constexpr uint32_t infinity = 0x7F800000U;
    const auto magnitude = [](float value) { return std::bit_cast<uint32_t>(value) & 0x7FFFFFFFU; };
    uint32_t largest = 0;
    for (const float value : values) {
        largest = std::max(largest, magnitude(value));
    }
    if (largest < infinity) {
        return;
    }
    const auto bad = std::ranges::find_if(values, [&](float value) { return magnitude(value) >= infinity; });
    fail(ErrorCode::bad_file, "{}: tensor '{}' holds {} at element {}, expected finite numbers", source, name,
         *bad, bad - values.begin());
}

std::vector<float> read_tensor(const GgufFile& file, const std::string& name,
                               const std::vector<int64_t>& shape) {
    const GgufTensor* tensor = file.find_tensor(name);
    if (tensor == nullptr) {
        fail(ErrorCode::bad_file, "{}: the tensor '{}' {} is missing", file.path().string(), name,
             shape_string(shape));
    }
    const std::vector<int64_t> found(tensor->ne.rbegin(), tensor->ne.rend());
    if (found != shape) {
        fail(ErrorCode::bad_file, "{}: tensor '{}' has shape {}, expected {}", file.path().string(), name,
             shape_string(found), shape_string(shape));
    }
    if (tensor->type != GGML_TYPE_F32 && tensor->type != GGML_TYPE_F16 && tensor->type != GGML_TYPE_Q8_0) {
        fail(ErrorCode::bad_file, "{}: tensor '{}' is {}, expected f32, f16 or q8_0", file.path().string(),
             name, ggml_type_name(tensor->type));
    }
    return to_float(*tensor);
}

bool is_matrix(const std::string& name, const std::vector<int64_t>& shape) {
    return shape.size() == 2 && name != "query";
}

void expect(const GgufFile& file, const char* key, const std::string& found, const std::string& expected) {
    if (found != expected) {
        fail(ErrorCode::bad_file, "{}: key '{}' is '{}', expected '{}'", file.path().string(), key, found,
             expected);
    }
}

} // namespace

std::vector<std::pair<std::string, std::vector<int64_t>>> pooler_tensors(const PoolerShape& shape) {
    const int64_t hidden = shape.hidden;
    const int64_t ffn = shape.ffn;
    std::vector<std::pair<std::string, std::vector<int64_t>>> tensors = {{"query", {shape.n_sp, hidden}}};
    for (uint32_t i = 0; i < shape.layers; ++i) {
        const std::string block = fmt::format("blocks.{}.", i);
        for (const char* attention : {"cross.", "selfa."}) {
            tensors.push_back({block + attention + "in_proj_weight", {3 * hidden, hidden}});
            tensors.push_back({block + attention + "in_proj_bias", {3 * hidden}});
            tensors.push_back({block + attention + "out_proj.weight", {hidden, hidden}});
            tensors.push_back({block + attention + "out_proj.bias", {hidden}});
        }
        for (const char* norm : {"lnq1.", "lnk.", "lnq2.", "lnq3."}) {
            tensors.push_back({block + norm + "weight", {hidden}});
            tensors.push_back({block + norm + "bias", {hidden}});
        }
        tensors.push_back({block + "ffn.0.weight", {ffn, hidden}});
        tensors.push_back({block + "ffn.0.bias", {ffn}});
        tensors.push_back({block + "ffn.2.weight", {hidden, ffn}});
        tensors.push_back({block + "ffn.2.bias", {hidden}});
    }
    tensors.push_back({"ln_out.weight", {hidden}});
    tensors.push_back({"ln_out.bias", {hidden}});
    return tensors;
}

void check(const PoolerWeights& weights, const std::string& source) {
    check_shape(weights.shape, source);
    check_finite({&weights.out_scale, 1}, "out_scale", source);
    const auto expected = pooler_tensors(weights.shape);
    for (const auto& [name, shape] : expected) {
        const auto found = weights.tensors.find(name);
        if (found == weights.tensors.end()) {
            fail(ErrorCode::bad_file, "{}: the tensor '{}' {} is missing", source, name, shape_string(shape));
        }
        if (found->second.size() != elements(shape)) {
            fail(ErrorCode::bad_file, "{}: tensor '{}' has {} elements, expected {}", source, name,
                 found->second.size(), shape_string(shape));
        }
        check_finite(found->second, name, source);
    }
    for (const auto& [name, values] : weights.tensors) {
        if (std::ranges::find(expected, name, &std::pair<std::string, std::vector<int64_t>>::first) ==
            expected.end()) {
            fail(ErrorCode::bad_file, "{}: the tensor '{}' is no part of a pooler of {} layers", source, name,
                 weights.shape.layers);
        }
    }
}

PoolerFile read_pooler(const std::filesystem::path& path) {
    const GgufFile file(path);
    const std::string source = path.string();
    expect(file, "general.architecture", file.string("general.architecture"), architecture);
    if (const uint32_t version = file.u32("spool.version"); version != format_version) {
        fail(ErrorCode::bad_file,
             "{}: key 'spool.version' is {}, expected {}; convert the pooler again or use the "
             "release of spool that wrote it",
             source, version, format_version);
    }
    expect(file, "spool.pooler.source", file.string("spool.pooler.source"), embedding_source);

    PoolerFile pooler;
    for (const Limit& limit : limits) {
        pooler.weights.shape.*limit.field = file.u32(fmt::format("spool.pooler.{}", limit.name));
    }
    check_shape(pooler.weights.shape, source);
    pooler.weights.out_scale = file.f32("spool.pooler.out_scale");

    const auto expected = pooler_tensors(pooler.weights.shape);
    if (file.tensors().size() > expected.size()) {
        for (const GgufTensor& tensor : file.tensors()) {
            pooler.weights.tensors.try_emplace(tensor.name);
        }
    }
    for (const auto& [name, shape] : expected) {
        pooler.weights.tensors.insert_or_assign(name, read_tensor(file, name, shape));
    }
    check(pooler.weights, source);

    pooler.base = read_base(file);
    pooler.trained = read_trained(file);
    return pooler;
}

void write_pooler(const std::filesystem::path& path, const PoolerFile& pooler, ggml_type type) {
    if (type != GGML_TYPE_F32 && type != GGML_TYPE_F16 && type != GGML_TYPE_Q8_0) {
        fail(ErrorCode::invalid_argument, "a pooler cannot be written as {}, expected f32, f16 or q8_0",
             ggml_type_name(type));
    }
    check(pooler.weights, path.string());

    GgufWriter writer;
    writer.set("general.architecture", std::string(architecture));
    writer.set("spool.version", format_version);
    for (const Limit& limit : limits) {
        writer.set(fmt::format("spool.pooler.{}", limit.name), pooler.weights.shape.*limit.field);
    }
    writer.set("spool.pooler.out_scale", pooler.weights.out_scale);
    writer.set("spool.pooler.source", std::string(embedding_source));
    set_origin(writer, pooler.base, pooler.trained);

    std::vector<std::vector<std::byte>> data;
    for (const auto& [name, shape] : pooler_tensors(pooler.weights.shape)) {
        const int64_t row = shape.back();
        ggml_type stored = is_matrix(name, shape) ? type : GGML_TYPE_F32;
        if (row % ggml_blck_size(stored) != 0) {
            stored = GGML_TYPE_F16;
        }
        data.push_back(quantize(stored, pooler.weights.tensors.at(name), row));
        writer.add(name, stored, {shape.rbegin(), shape.rend()}, data.back());
    }
    writer.write(path);
}

} // namespace spool
