// slots.gguf: the learned vectors that the model writes its memory into (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "pooler/origin.h"

namespace spool {

/// `general.architecture` of slots.gguf.
constexpr const char* slots_architecture = "spool-slots";

struct SlotsFile {
    uint32_t width = 0;         ///< of the model's embeddings
    uint32_t count = 0;         ///< m: vectors fed after each chunk
    std::vector<float> vectors; ///< [count][width]
    BaseIdentity base;
    TrainedSettings trained;
};

/// Throws Error{not_found|bad_file}, naming file and field.
SlotsFile read_slots(const std::filesystem::path& path);
void write_slots(const std::filesystem::path& path, const SlotsFile& slots);

} // namespace spool
