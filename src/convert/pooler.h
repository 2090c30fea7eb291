// Upstream's pooler files to pooler.gguf's weights, and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "pooler/weights.h"

namespace spool {

/// Reads pooler.safetensors, pooler_4bit.safetensors or pooler.pt (told apart by content). The shape comes
/// from the tensors; pooler_config.json beside the file, where there is one, must agree. Heads stand in no
/// tensor: they come from the config, else from `heads`, else are 8 as upstream. `out_scale` is a tensor or a
/// field of the config. Throws Error{not_found|bad_file|unsupported|invalid_argument}; a contradiction names
/// both sides.
PoolerWeights import_pooler(const std::filesystem::path& source, std::optional<uint32_t> heads = {});

/// Writes `path` (safetensors, all F32, values unchanged) and pooler_config.json beside it.
void export_pooler(const PoolerWeights& pooler, const std::filesystem::path& path);

} // namespace spool
