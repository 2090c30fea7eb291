#include "train/export.h"

#include <algorithm>

#include "core/error.h"
#include "formats/lora_keys.h"
#include "memory/bundle.h"
#include "memory/slots_file.h"
#include "train/reader.h"

namespace spool::train {

namespace {

std::vector<float> to_vector(const Tensor& tensor) {
    const Tensor host = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
    const auto* data = host.const_data_ptr<float>();
    return {data, data + host.numel()};
}

void copy_values(const Tensor& target, const std::vector<float>& values, const std::string& what) {
    if (static_cast<size_t>(target.numel()) != values.size()) {
        fail(ErrorCode::incompatible, "{}: {} values, but this run's settings call for {}", what,
             values.size(), target.numel());
    }
    const at::NoGradGuard no_grad;
    target.copy_(at::from_blob(const_cast<float*>(values.data()), target.sizes(),
                               at::kFloat)); // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
}

/// A tensor's row as GGUF stores it: type, sizes innermost first, bytes made when the file is written.
void add_tensor(GgufWriter& writer, const std::string& name, ggml_type type, const Tensor& tensor) {
    std::vector<int64_t> sizes = tensor.sizes().vec();
    const int64_t row = sizes.back();
    std::ranges::reverse(sizes);
    writer.add(name, type, sizes,
               [tensor, type, row](const GgufSink& sink) { sink(quantize(type, to_vector(tensor), row)); });
}

void load_pooler(Reader& reader, const Bundle& bundle) {
    if (bundle.pooler.empty()) {
        fail(ErrorCode::incompatible, "{}: a bundle of slots; train it on with --memory slots",
             bundle.folder.string());
    }
    const PoolerFile pooler = read_pooler(bundle.pooler);
    if (pooler.weights.shape != reader.pooler().shape()) {
        fail(ErrorCode::incompatible,
             "{}: a pooler of another shape than this run's (hidden {}, n_sp {}, heads {}, layers {}, ffn "
             "{}); set "
             "--n-sp, --pooler-heads, --pooler-layers and --pooler-ffn to these",
             bundle.pooler.string(), pooler.weights.shape.hidden, pooler.weights.shape.n_sp,
             pooler.weights.shape.heads, pooler.weights.shape.layers, pooler.weights.shape.ffn);
    }
    for (const auto& [name, tensor] : reader.pooler().parameters()) {
        copy_values(tensor,
                    name == "out_scale" ? std::vector{pooler.weights.out_scale}
                                        : pooler.weights.tensors.at(name),
                    bundle.pooler.string() + ": '" + name + "'");
    }
}

void load_slots(Reader& reader, const Bundle& bundle) {
    if (bundle.slots.empty()) {
        fail(ErrorCode::incompatible, "{}: a bundle of a pooler; train it on with --memory embedding",
             bundle.folder.string());
    }
    copy_values(reader.slots(), read_slots(bundle.slots).vectors, bundle.slots.string() + ": slots");
}

void load_adapters(Reader& reader, const std::filesystem::path& path) {
    const GgufFile lora(path);
    const auto parameters = adapter_parameters(reader.model());
    if (parameters.empty()) {
        fail(ErrorCode::incompatible,
             "{}: has an adapter, but this stage trains without one; merge it first with "
             "spool-train export --merged, or train with --stage lora",
             path.string());
    }
    for (const auto& [name, tensor] : parameters) {
        const GgufTensor* found = lora.find_tensor(name);
        if (found == nullptr) {
            fail(ErrorCode::bad_file, "{}: the tensor '{}' is missing", path.string(), name);
        }
        copy_values(tensor, to_float(*found), path.string() + ": '" + name + "'");
    }
    const auto alpha = static_cast<double>(lora.f32("adapter.lora.alpha"));
    for (size_t layer = 0; layer < reader.model().blocks.size(); ++layer) {
        for (auto& [name, matrix] : reader.model().matrices(layer)) {
            if (matrix->adapter) {
                matrix->adapter->scale = alpha / static_cast<double>(matrix->adapter->a.size(0));
            }
        }
    }
}

} // namespace

void load_bundle(Reader& reader, const std::filesystem::path& folder) {
    const Bundle bundle = read_bundle(folder);
    if (reader.has_slots()) {
        load_slots(reader, bundle);
    } else {
        load_pooler(reader, bundle);
    }
    if (!bundle.lora) {
        return;
    }
    load_adapters(reader, *bundle.lora);
}

void write_bundle(Reader& reader, const Settings& settings, const GgufFile& model,
                  const std::filesystem::path& folder, const ExportOptions& options) {
    if (settings.memory == MemoryKind::hidden) {
        fail(
            ErrorCode::unsupported,
            "memory 'hidden' cannot be exported: the engine's pooler reads token embeddings only; train with "
            "--memory embedding or slots for a bundle");
    }
    std::filesystem::create_directories(folder);
    const BaseIdentity base = base_identity(model);
    const bool slots = reader.has_slots();
    Bundle bundle{.folder = folder,
                  .pooler = slots ? std::filesystem::path() : folder / "pooler.gguf",
                  .slots = slots ? folder / "slots.gguf" : std::filesystem::path(),
                  .lora = {},
                  .model = {},
                  .base = base,
                  .trained = {.rw = settings.window_max,
                              .chunk = settings.chunk,
                              .max_distant = slots ? 0 : settings.max_distant,
                              .max_slots = slots ? settings.max_slots : 0,
                              .max_position = options.max_position,
                              .layout = settings.layout},
                  .recovered = options.recovered};
    if (slots) {
        write_slots(bundle.slots, {.width = static_cast<uint32_t>(reader.slots().size(1)),
                                   .count = reader.vectors(),
                                   .vectors = to_vector(reader.slots()),
                                   .base = base,
                                   .trained = bundle.trained});
    } else {
        write_pooler(bundle.pooler,
                     {.weights = reader.pooler().weights(), .base = base, .trained = bundle.trained},
                     options.pooler);
    }
    if (const auto& first = reader.model().blocks.front().attn_q.adapter) {
        const auto adapters = adapter_parameters(reader.model());
        const ModelShape& shape = reader.model().shape;
        GgufWriter writer;
        set_lora_keys(writer, base, static_cast<float>(first->scale * static_cast<double>(first->a.size(0))),
                      static_cast<uint32_t>(shape.heads), static_cast<uint32_t>(shape.kv_heads));
        for (const auto& [name, tensor] : adapters) {
            add_tensor(writer, name, options.adapter, tensor);
        }
        bundle.lora = folder / "lora.gguf";
        writer.write(*bundle.lora);
    }
    // What an earlier export left and this one does not have would be taken for a part of it.
    std::filesystem::remove(folder / (slots ? "pooler.gguf" : "slots.gguf"));
    if (!bundle.lora) {
        std::filesystem::remove(folder / "lora.gguf");
    }
    spool::write_bundle(bundle);
}

void write_model(Reader& reader, const GgufFile& model, const std::filesystem::path& path, ggml_type type) {
    GgufWriter writer;
    for (const GgufPair& pair : model.pairs()) {
        writer.set(pair.key, pair.value);
    }
    std::map<std::string, Tensor> trained;
    for (const auto& [name, tensor] : model_parameters(reader.model(), true)) {
        trained[name] = tensor;
    }
    const at::NoGradGuard no_grad;
    for (size_t layer = 0; layer < reader.model().blocks.size(); ++layer) {
        for (auto& [name, matrix] : reader.model().matrices(layer)) {
            const Tensor base = matrix->packed ? unpack(*matrix->packed) : matrix->weight;
            trained["blk." + std::to_string(layer) + "." + name + ".weight"] =
                matrix->adapter
                    ? at::addmm(base, matrix->adapter->b, matrix->adapter->a, 1, matrix->adapter->scale)
                    : base;
        }
    }
    for (const GgufTensor& tensor : model.tensors()) {
        if (const auto found = trained.find(tensor.name); found != trained.end()) {
            const bool matrix = tensor.ne.size() > 1;
            add_tensor(writer, tensor.name, matrix ? type : GGML_TYPE_F32, found->second);
        } else {
            writer.add(tensor.name, tensor.type, tensor.ne, tensor.data);
        }
    }
    writer.write(path);
}

} // namespace spool::train
