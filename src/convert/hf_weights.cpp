#include "convert/hf_weights.h"

#include <set>

#include "core/error.h"
#include "core/json_file.h"

namespace spool {

namespace {

constexpr std::string_view index_name = "model.safetensors.index.json";
constexpr std::string_view single_name = "model.safetensors";

/// The shards the index names, each once. Names with folders in them are refused.
std::set<std::string> shards_of(const JsonFields& index) {
    std::set<std::string> shards;
    const JsonFields map = index.object("weight_map");
    for (const auto& [tensor, shard] : map.json().items()) {
        const std::filesystem::path name = shard.is_string() ? shard.get<std::string>() : "";
        if (name.empty() || name != name.filename()) {
            fail(ErrorCode::bad_file, "{}: '{}' lies in {}, expected the name of a file in the same folder",
                 map.source(), tensor, shard.dump());
        }
        shards.insert(name.string());
    }
    return shards;
}

} // namespace

HfWeights::HfWeights(const std::filesystem::path& folder) : folder_(folder) {
    std::optional<JsonFields> index;
    std::set<std::string> shards = {std::string(single_name)};
    if (std::filesystem::exists(folder / index_name)) {
        index = read_json_file(folder / index_name);
        shards = shards_of(*index);
    }
    for (const std::string& shard : shards) {
        const SafetensorsFile& file = files_.emplace_back(folder / shard);
        for (const TensorView& tensor : file.tensors()) {
            if (!tensors_.emplace(tensor.name, &tensor).second) {
                fail(ErrorCode::bad_file, "{}: tensor '{}' stands in an earlier shard too",
                     file.path().string(), tensor.name);
            }
        }
    }
    if (index) {
        for (const auto& [tensor, shard] : index->json().at("weight_map").items()) {
            if (!tensors_.contains(tensor)) {
                fail(ErrorCode::bad_file, "{}: names tensor '{}', which no shard holds", index->source(),
                     tensor);
            }
        }
    }
}

const TensorView* HfWeights::find(std::string_view name) const {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? nullptr : it->second;
}

std::optional<MlxMatrix> HfWeights::find_mlx(const std::string& module, uint32_t group) const {
    constexpr int64_t codes_per_word = 8;
    const TensorView* codes = find(module + ".weight");
    const TensorView* scales = find(module + ".scales");
    const TensorView* biases = find(module + ".biases");
    if (codes == nullptr || codes->dtype != DType::u32) {
        return std::nullopt;
    }
    if (scales == nullptr || biases == nullptr) {
        fail(ErrorCode::bad_file, "{} is 4-bit, but '{}.scales' or '.biases' is missing",
             describe(codes->name), module);
    }
    const bool two_dimensions = codes->shape.size() == 2 && scales->shape.size() == 2;
    if (!two_dimensions || scales->shape != biases->shape || codes->shape[0] != scales->shape[0] ||
        codes->shape[1] * codes_per_word != scales->shape[1] * int64_t{group}) {
        fail(ErrorCode::bad_file, "{}: codes {}, scales {} and biases {} do not fit together in groups of {}",
             describe(codes->name), shape_string(codes->shape), shape_string(scales->shape),
             shape_string(biases->shape), group);
    }
    return MlxMatrix{.codes = *codes,
                     .scales = *scales,
                     .biases = *biases,
                     .rows = codes->shape[0],
                     .cols = codes->shape[1] * codes_per_word,
                     .group = group};
}

std::string HfWeights::describe(std::string_view name) const {
    return folder_.string() + ": tensor '" + std::string(name) + "'";
}

} // namespace spool
