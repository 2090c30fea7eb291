#include "convert/source.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "context/saved_session.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "formats/torch_pickle.h"
#include "memory/slots_file.h"

namespace spool {

namespace {

enum class Container { gguf, zip, safetensors, unknown };

Container container_of(const std::filesystem::path& path) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    const auto starts_with = [&](std::string_view magic) {
        return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
    };
    if (starts_with("GGUF")) {
        return Container::gguf;
    }
    if (starts_with("PK\x03\x04")) {
        return Container::zip;
    }
    constexpr size_t length_bytes = 8;
    if (bytes.size() > length_bytes && bytes[length_bytes] == std::byte{'{'}) {
        return Container::safetensors;
    }
    return Container::unknown;
}

std::string_view container_name(Container container) {
    switch (container) {
    case Container::gguf:
        return "a GGUF file";
    case Container::zip:
        return "a torch.save archive";
    case Container::safetensors:
        return "a safetensors file";
    case Container::unknown:
        break;
    }
    return "none of GGUF, safetensors and a torch.save archive";
}

/// What the extension promises; unknown when it promises nothing.
Container promised_by(const std::filesystem::path& path) {
    const auto extension = path.extension();
    if (extension == ".gguf") {
        return Container::gguf;
    }
    if (extension == ".safetensors") {
        return Container::safetensors;
    }
    if (extension == ".pt" || extension == ".pth") {
        return Container::zip;
    }
    return Container::unknown;
}

SourceKind kind_of(const GgufFile& file) {
    const std::string architecture = file.string("general.architecture");
    if (architecture == "spool-pooler") {
        return SourceKind::gguf_pooler;
    }
    if (architecture == slots_architecture) {
        return SourceKind::gguf_slots;
    }
    if (architecture == session_architecture) {
        return SourceKind::gguf_session;
    }
    return file.optional_string("general.type") == "adapter" ? SourceKind::gguf_lora : SourceKind::gguf_model;
}

bool holds_pooler(const std::vector<TensorView>& tensors) {
    const auto has = [&](std::string_view name) {
        return std::ranges::any_of(tensors, [&](const TensorView& tensor) { return tensor.name == name; });
    };
    return has("query") && has("ln_out.weight");
}

SourceKind kind_of(const SafetensorsFile& file) {
    if (holds_pooler(file.tensors())) {
        return SourceKind::pooler_safetensors;
    }
    const bool adapter = std::ranges::any_of(file.tensors(), [](const TensorView& tensor) {
        return tensor.name.find(".lora_A") != std::string::npos ||
               tensor.name.find(".lora_embedding_A") != std::string::npos;
    });
    return adapter ? SourceKind::peft_adapter : SourceKind::other_safetensors;
}

SourceKind detect_file(const std::filesystem::path& path) {
    const Container found = container_of(path);
    const Container promised = promised_by(path);
    if (found == Container::unknown || (promised != Container::unknown && promised != found)) {
        fail(ErrorCode::bad_file, "{}: holds {}{}{}", path.string(), container_name(found),
             promised == Container::unknown ? "" : ", but its name promises ",
             promised == Container::unknown ? "" : container_name(promised));
    }
    switch (found) {
    case Container::gguf:
        return kind_of(GgufFile(path));
    case Container::safetensors:
        return kind_of(SafetensorsFile(path));
    default:
        return holds_pooler(TorchPickleFile(path).tensors()) ? SourceKind::pooler_torch
                                                             : SourceKind::other_torch;
    }
}

SourceKind detect_folder(const std::filesystem::path& folder) {
    using std::filesystem::exists;
    if (exists(folder / "bundle.json")) {
        return SourceKind::bundle;
    }
    if (!find_upstream_pooler(folder).empty()) {
        return SourceKind::upstream_bundle;
    }
    if (exists(folder / "adapter_config.json") || exists(folder / "adapter_model.safetensors")) {
        return SourceKind::peft_adapter;
    }
    if (exists(folder / "config.json")) {
        const JsonFields config = read_json_file(folder / "config.json");
        return config.find("quantization") != nullptr ? SourceKind::mlx_model : SourceKind::hf_model;
    }
    fail(ErrorCode::bad_file,
         "{}: holds none of bundle.json, a pooler, adapter_config.json and config.json: neither a bundle, "
         "nor an "
         "adapter, nor a model",
         folder.string());
}

} // namespace

std::string_view to_string(SourceKind kind) {
    switch (kind) {
    case SourceKind::gguf_model:
        return "GGUF model";
    case SourceKind::gguf_pooler:
        return "pooler.gguf";
    case SourceKind::gguf_lora:
        return "lora.gguf";
    case SourceKind::gguf_slots:
        return "slots.gguf";
    case SourceKind::gguf_session:
        return "spool session";
    case SourceKind::pooler_safetensors:
        return "pooler.safetensors";
    case SourceKind::pooler_torch:
        return "pooler.pt";
    case SourceKind::peft_adapter:
        return "PEFT adapter";
    case SourceKind::hf_model:
        return "Hugging Face model folder";
    case SourceKind::mlx_model:
        return "MLX model folder";
    case SourceKind::upstream_bundle:
        return "upstream bundle folder";
    case SourceKind::bundle:
        return "bundle";
    case SourceKind::other_safetensors:
        return "safetensors file";
    case SourceKind::other_torch:
        return "torch.save archive";
    }
    return "unknown";
}

SourceKind detect_source(const std::filesystem::path& path) {
    if (!std::filesystem::exists(path)) {
        fail(ErrorCode::not_found, "{}: no such file or folder", path.string());
    }
    return std::filesystem::is_directory(path) ? detect_folder(path) : detect_file(path);
}

std::filesystem::path find_upstream_pooler(const std::filesystem::path& folder) {
    for (const auto* name : {"pooler.safetensors", "pooler.pt", "pooler_4bit.safetensors"}) {
        if (std::filesystem::exists(folder / name)) {
            return folder / name;
        }
    }
    return {};
}

} // namespace spool
