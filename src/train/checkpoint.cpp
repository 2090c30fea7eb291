#include "train/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "formats/safetensors.h"
#include "train/reader.h"

namespace spool::train {

namespace {

constexpr std::string_view prefix = "step-";
constexpr std::string_view suffix = ".safetensors";

std::vector<std::filesystem::path> checkpoints(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> found;
    if (std::filesystem::is_directory(folder)) {
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with(prefix) && name.ends_with(suffix)) {
                found.push_back(entry.path());
            }
        }
    }
    std::ranges::sort(found);
    return found;
}

void copy_into(const Tensor& target, const Tensor& source, const std::string& name, const std::string& path) {
    if (source.sizes() != target.sizes()) {
        fail(ErrorCode::bad_file, "{}: the tensor '{}' has another shape than this run's settings call for",
             path, name);
    }
    const at::NoGradGuard no_grad;
    target.copy_(source);
}

} // namespace

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
    std::vector<Tensor> host; // keeps the bytes alive
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : checkpoint.tensors) {
        const bool bytes = tensor.scalar_type() == at::kByte;
        host.push_back(tensor.detach().to(at::kCPU, bytes ? at::kByte : at::kFloat).contiguous());
        const Tensor& copy = host.back();
        views.push_back({.name = name,
                         .dtype = bytes ? DType::u8 : DType::f32,
                         .shape = copy.sizes().vec(),
                         .data = std::as_bytes(
                             std::span(static_cast<const char*>(copy.const_data_ptr()), copy.nbytes()))});
    }
    write_safetensors(path, views, {{"spool.training", checkpoint.state.dump()}});
}

Checkpoint read_checkpoint(const std::filesystem::path& path) {
    const SafetensorsFile file(path);
    Checkpoint checkpoint;
    const auto state = file.metadata().find("spool.training");
    if (state == file.metadata().end()) {
        fail(ErrorCode::bad_file, "{}: no training checkpoint (metadata 'spool.training' is missing)",
             path.string());
    }
    checkpoint.state = Json::parse(state->second, nullptr, false);
    if (checkpoint.state.is_discarded()) {
        fail(ErrorCode::bad_file, "{}: metadata 'spool.training' is not JSON", path.string());
    }
    for (const TensorView& view : file.tensors()) {
        Tensor tensor = at::empty(view.shape, view.dtype == DType::u8 ? at::kByte : at::kFloat);
        if (view.dtype != DType::u8 && view.dtype != DType::f32) {
            fail(ErrorCode::bad_file, "{}: tensor '{}' is neither f32 nor u8", path.string(), view.name);
        }
        if (!view.data.empty()) {
            std::memcpy(tensor.mutable_data_ptr(), view.data.data(), view.data.size());
        }
        checkpoint.tensors[view.name] = tensor;
    }
    return checkpoint;
}

std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder) {
    const auto all = checkpoints(folder);
    return all.empty() ? std::nullopt : std::optional(all.back());
}

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, uint64_t step) {
    return folder / fmt::format("{}{:08}{}", prefix, step, suffix);
}

void rotate_checkpoints(const std::filesystem::path& folder, size_t keep) {
    const auto all = checkpoints(folder);
    for (size_t i = 0; i + keep < all.size(); ++i) {
        std::filesystem::remove(all[i]);
    }
}

void load_weights(Reader& reader, const std::filesystem::path& path) {
    const Checkpoint checkpoint = read_checkpoint(path);
    size_t used = 0;
    const auto take = [&](const std::string& name, const Tensor& target) {
        if (const auto found = checkpoint.tensors.find(name); found != checkpoint.tensors.end()) {
            copy_into(target, found->second, name, path.string());
            ++used;
        }
    };
    for (const auto& [name, tensor] : reader.memory_parameters()) {
        take(name, tensor);
    }
    for (const auto& [name, tensor] : adapter_parameters(reader.model())) {
        take("lora/" + name, tensor);
    }
    for (const auto& [name, tensor] : model_parameters(reader.model(), true)) {
        take("model/" + name, tensor);
    }
    if (used == 0) {
        fail(ErrorCode::bad_file, "{}: holds no tensor that this run trains", path.string());
    }
}

} // namespace spool::train
