#include "convert/inspect.h"

#include <algorithm>

#include "context/saved_session.h"
#include "convert/hf_config.h"
#include "convert/hf_weights.h"
#include "convert/lora.h"
#include "convert/pooler.h"
#include "convert/source.h"
#include "core/error.h"
#include "core/json_file.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "formats/torch_pickle.h"
#include "memory/bundle.h"
#include "memory/slots_file.h"
#include "pooler/weights.h"

namespace spool {

namespace {

constexpr size_t shown_elements = 8;

template <typename T>
Json elements_json(const std::vector<T>& values) {
    Json first = Json::array();
    for (size_t i = 0; i < std::min(values.size(), shown_elements); ++i) {
        first.push_back(static_cast<T>(values[i]));
    }
    return values.size() <= shown_elements ? first : Json{{"count", values.size()}, {"first", first}};
}

Json value_json(const GgufValue& value) {
    return std::visit(
        [](const auto& v) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(v)>, GgufArray>) {
                return std::visit([](const auto& values) { return elements_json(values); }, v);
            } else {
                return v;
            }
        },
        value);
}

Json tensor_json(const TensorView& tensor) {
    return {{"name", tensor.name},
            {"type", dtype_name(tensor.dtype)},
            {"shape", tensor.shape},
            {"bytes", tensor.data.size()}};
}

Json tensors_json(const std::vector<TensorView>& tensors) {
    Json json = Json::array();
    for (const TensorView& tensor : tensors) {
        json.push_back(tensor_json(tensor));
    }
    return json;
}

void describe_gguf(const std::filesystem::path& path, Json& report) {
    const GgufFile file(path);
    for (const GgufPair& pair : file.pairs()) {
        report["metadata"][pair.key] = value_json(pair.value);
    }
    for (const GgufTensor& tensor : file.tensors()) {
        report["tensors"].push_back({{"name", tensor.name},
                                     {"type", ggml_type_name(tensor.type)},
                                     {"shape", std::vector<int64_t>(tensor.ne.rbegin(), tensor.ne.rend())},
                                     {"bytes", tensor.data.size()}});
    }
}

void describe_safetensors(const std::filesystem::path& path, Json& report) {
    const SafetensorsFile file(path);
    for (const auto& [key, value] : file.metadata()) {
        report["metadata"][key] = value;
    }
    report["tensors"] = tensors_json(file.tensors());
}

/// The identity's fields, then what the transcript tells; numbers of tokens, but for the positions.
Json session_json(const SavedSession& saved) {
    const Transcript& t = saved.transcript;
    Json json = saved.identity;
    if (const auto bundle = json.find("bundle"); bundle != json.end() && *bundle == Json("")) {
        json["bundle"] = nullptr;
    }
    json["tokens"] = t.tokens.size();
    json["pinned_tokens"] = t.pinned;
    json["distant_tokens"] = t.distant.size();
    json["evicted_tokens"] = t.window_start - t.pinned - t.distant.size();
    json["window_tokens"] = t.window().size();
    json["soft_prompt_vectors"] = t.soft_prompt;
    json["slots"] = t.slot_cells();
    json["window_position"] = t.position(t.window_start);
    json["next_position"] = t.next_position();
    json["cache_bytes"] = saved.cache.size();
    return json;
}

/// Fields of a JSON file beside or inside what is inspected.
void add_fields(const std::filesystem::path& path, Json& report) {
    if (std::filesystem::exists(path)) {
        const JsonFields fields = read_json_file(path);
        for (const auto& [key, value] : fields.json().items()) {
            report["metadata"][key] = value;
        }
    }
}

void describe_model_folder(const std::filesystem::path& folder, Json& report) {
    add_fields(folder / "config.json", report);
    const HfWeights weights(folder);
    for (const auto& [name, tensor] : weights.tensors()) {
        report["tensors"].push_back(tensor_json(*tensor));
    }
    parse_hf_config(read_json_file(folder / "config.json"));
}

void describe_adapter(const std::filesystem::path& path, Json& report) {
    const bool folder = std::filesystem::is_directory(path);
    add_fields((folder ? path : path.parent_path()) / "adapter_config.json", report);
    report["tensors"] =
        tensors_json(SafetensorsFile(folder ? path / "adapter_model.safetensors" : path).tensors());
    check_peft(path);
}

void describe_memory(const Bundle& bundle, Json& report) {
    describe_gguf(bundle.pooler.empty() ? bundle.slots : bundle.pooler, report);
}

/// Fills in metadata and tensors, then checks; what throws is the report's problem.
void describe(SourceKind kind, const std::filesystem::path& path, Json& report) {
    switch (kind) {
    case SourceKind::gguf_model:
        return describe_gguf(path, report);
    case SourceKind::gguf_pooler:
        describe_gguf(path, report);
        read_pooler(path);
        return;
    case SourceKind::gguf_slots:
        describe_gguf(path, report);
        read_slots(path);
        return;
    case SourceKind::gguf_lora:
        describe_gguf(path, report);
        return check_lora(path);
    case SourceKind::gguf_session:
        describe_gguf(path, report);
        report["session"] = session_json(read_saved_session(GgufFile(path)));
        return;
    case SourceKind::pooler_safetensors:
        describe_safetensors(path, report);
        import_pooler(path);
        return;
    case SourceKind::pooler_torch:
    case SourceKind::other_torch:
        report["tensors"] = tensors_json(TorchPickleFile(path).tensors());
        if (kind == SourceKind::pooler_torch) {
            import_pooler(path);
        }
        return;
    case SourceKind::other_safetensors:
        return describe_safetensors(path, report);
    case SourceKind::peft_adapter:
        return describe_adapter(path, report);
    case SourceKind::hf_model:
    case SourceKind::mlx_model:
        return describe_model_folder(path, report);
    case SourceKind::upstream_bundle:
        add_fields(path / "pooler_config.json", report);
        import_pooler(find_upstream_pooler(path));
        if (std::filesystem::exists(path / "adapter_config.json")) {
            check_peft(path);
        }
        return;
    case SourceKind::bundle:
        add_fields(path / "bundle.json", report);
        return describe_memory(read_bundle(path), report);
    }
}

uintmax_t size_of(const std::filesystem::path& path) {
    if (!std::filesystem::is_directory(path)) {
        return std::filesystem::file_size(path);
    }
    uintmax_t size = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
        size += entry.is_regular_file() ? entry.file_size() : 0;
    }
    return size;
}

} // namespace

Json inspect(const std::filesystem::path& path) {
    const SourceKind kind = detect_source(path);
    Json report = {{"path", path.string()},      {"kind", to_string(kind)},  {"bytes", size_of(path)},
                   {"metadata", Json::object()}, {"tensors", Json::array()}, {"problem", nullptr}};
    try {
        describe(kind, path, report);
    } catch (const Error& error) {
        report["problem"] = error.what();
    }
    return report;
}

} // namespace spool
