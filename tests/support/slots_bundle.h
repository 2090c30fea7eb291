// A bundle of random slots for a test's model: what the strategy does, without sense in what it keeps.
#pragma once

#include <filesystem>

#include "core/random.h"
#include "llm/model.h"
#include "memory/bundle.h"
#include "memory/slots_file.h"

namespace spool::test {

/// `count` slots, in a new folder.
inline Bundle write_slots_bundle(const std::filesystem::path& folder, const Model& model, uint32_t count) {
    Random random(4);
    SlotsFile file{.width = static_cast<uint32_t>(model.facts().width),
                   .count = count,
                   .vectors = {},
                   .base = model.identity(),
                   .trained = {}};
    for (uint32_t i = 0; i < count * file.width; ++i) {
        file.vectors.push_back(static_cast<float>(random.normal() * 0.05));
    }
    std::filesystem::create_directory(folder);
    write_slots(folder / "slots.gguf", file);
    Bundle bundle;
    bundle.folder = folder;
    bundle.slots = folder / "slots.gguf";
    bundle.base = file.base;
    write_bundle(bundle);
    return read_bundle(folder);
}

} // namespace spool::test
