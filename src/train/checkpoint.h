// Checkpoints: one safetensors file with every trained tensor, the optimiser's state and the run's place,
// written atomically. A resumed run goes on as if it had never stopped.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "core/json.h"
#include "train/torch.h"

namespace spool::train {

class Reader;

struct Checkpoint {
    std::map<std::string, Tensor> tensors; ///< "pooler/...", "lora/...", "model/..." and "adam/..."
    Json state;                            ///< step, the data's place, settings, seconds trained
};

/// `path` appears only when complete. Tensors are written as float32, or uint8 where they are.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);
/// Throws Error{not_found|bad_file}.
Checkpoint read_checkpoint(const std::filesystem::path& path);

/// step-00001200.safetensors of the highest step in `folder`; nothing if there is none.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, uint64_t step);
/// Removes all but the newest `keep`.
void rotate_checkpoints(const std::filesystem::path& folder, size_t keep);

/// Copies the trained tensors of the checkpoint at `path` into the reader's of the same name. Throws
/// Error{bad_file} for one of another shape and when none fits.
void load_weights(Reader& reader, const std::filesystem::path& path);

} // namespace spool::train
