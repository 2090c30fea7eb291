// What a user asked for of the memory settings, and how the rest is filled in.
#pragma once

#include <cstdint>
#include <optional>

#include "llm/model.h"
#include "memory/bundle.h"
#include "memory/settings.h"

namespace spool {

struct MemoryRequest {
    std::optional<StrategyKind> strategy;
    std::optional<Layout> refresh;
    std::optional<uint32_t> pin;
    std::optional<uint32_t> window;
    std::optional<uint32_t> chunk;
    std::optional<uint32_t> max_distant;
    std::optional<uint32_t> max_slots;
    std::optional<uint32_t> full_length;
};

/// What was not asked for comes from the bundle (may be nullptr) as trained, else from the defaults. With a
/// bundle the strategy is the one it was trained for, without one window; `full` reaches to the model's
/// trained context.
MemorySettings resolve(const MemoryRequest& request, const Bundle* bundle, const Model& model);

} // namespace spool
