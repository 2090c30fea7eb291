#include "convert/bundle.h"

#include "convert/architecture.h"
#include "convert/lora.h"
#include "convert/pooler.h"
#include "convert/source.h"
#include "core/error.h"
#include "memory/bundle.h"

namespace spool {

namespace {

constexpr std::string_view pooler_name = "pooler.gguf";
constexpr std::string_view lora_name = "lora.gguf";

void check_width(const std::filesystem::path& source, const PoolerWeights& pooler, const GgufFile& base) {
    if (const uint32_t width = model_shape(base).hidden; width != pooler.shape.hidden) {
        fail(ErrorCode::incompatible,
             "{}: the pooler is {} wide, but the embeddings of {} have {} columns; give the model "
             "it was trained for",
             source.string(), pooler.shape.hidden, base.path().string(), width);
    }
}

} // namespace

void bundle_from_upstream(const std::filesystem::path& folder, const GgufFile& base,
                          const std::filesystem::path& destination, const BundleOptions& options) {
    const auto source = find_upstream_pooler(folder);
    if (source.empty()) {
        fail(ErrorCode::not_found, "{}: holds no pooler.safetensors, pooler.pt or pooler_4bit.safetensors",
             folder.string());
    }
    const PoolerFile pooler = {.weights = import_pooler(source, options.heads),
                               .base = base_identity(base),
                               .trained = options.trained};
    check_width(source, pooler.weights, base);
    std::filesystem::create_directories(destination);
    write_pooler(destination / pooler_name, pooler, options.pooler_type);
    if (std::filesystem::exists(folder / "adapter_config.json")) {
        peft_to_gguf(folder, base, destination / lora_name, options.lora_type);
    } else {
        std::filesystem::remove(destination / lora_name); // of an earlier conversion into the same folder
    }
    Bundle bundle;
    bundle.folder = destination;
    bundle.base = pooler.base;
    bundle.trained = pooler.trained;
    write_bundle(bundle);
}

void bundle_to_upstream(const std::filesystem::path& bundle, const GgufFile* base,
                        const std::filesystem::path& destination) {
    const Bundle files = read_bundle(bundle);
    if (files.pooler.empty()) {
        fail(ErrorCode::unsupported, "{}: a bundle of slots, which upstream's formats cannot hold",
             bundle.string());
    }
    std::filesystem::create_directories(destination);
    export_pooler(read_pooler(files.pooler).weights, destination / "pooler.safetensors");
    if (files.lora) {
        gguf_to_peft(*files.lora, base, destination);
    }
}

} // namespace spool
