// A bundle: the folder that holds what was trained for one model. bundle.json names the other files with
// their SHA-256, the model they fit and the settings they were trained with (docs/formats.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/json.h"
#include "pooler/weights.h"

namespace spool {

struct Bundle {
    std::filesystem::path folder;
    std::filesystem::path pooler;               ///< folder/pooler.gguf; empty in a bundle of slots
    std::filesystem::path slots;                ///< folder/slots.gguf; empty in a bundle of a pooler
    std::optional<std::filesystem::path> lora;  ///< folder/lora.gguf
    std::optional<std::filesystem::path> model; ///< folder/model.gguf
    BaseIdentity base;
    TrainedSettings trained;
    Json recovered; ///< the measured figures and the command that gave them, or null
};

/// Reads and checks folder/bundle.json and the files it names: presence, size, SHA-256.
/// Throws Error{not_found|bad_file} naming the file, what was found and what was expected.
Bundle read_bundle(const std::filesystem::path& folder);

/// Writes bundle.json for the files that lie in `bundle.folder` (pooler.gguf or slots.gguf must; lora.gguf
/// and model.gguf may): sizes and hashes are taken from them.
void write_bundle(const Bundle& bundle);

/// Throws Error{incompatible} unless `found`, the loaded model's identity, is the model of `bundle`: the
/// architecture and the vocabulary must match wherever the bundle states them.
void check_fits(const Bundle& bundle, const BaseIdentity& found);

} // namespace spool
