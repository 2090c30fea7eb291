// The distant buffer's bookkeeping: what enters it, and which tokens leave when it overflows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/transcript.h"

namespace spool {

/// Moves the oldest window tokens to the distant buffer until the window holds `window` tokens.
void move_to_distant(Transcript& transcript, size_t window);

/// Positions within `mass` of the `keep` largest values, ascending, so that original order is preserved. Of
/// equal values the later one is kept. `keep` >= mass.size() keeps all.
std::vector<uint32_t> top_by_mass(std::span<const float> mass, size_t keep);

/// Drops all but the `keep` distant tokens of highest mass (mass[j] belongs to distant[j]) and returns how
/// many were dropped.
size_t evict(Transcript& transcript, std::span<const float> mass, size_t keep);

} // namespace spool
