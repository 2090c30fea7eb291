#include "memory/schedule.h"

#include <algorithm>

#include "memory/distant_buffer.h"

namespace spool {

size_t next_boundary(size_t raw_length, size_t chunk, size_t idle) {
    return (std::max(raw_length, idle) / chunk + 1) * chunk;
}

size_t idle_length(const MemorySettings& settings, uint32_t n_sp) {
    const bool before_window =
        settings.strategy == StrategyKind::soft_prompt && settings.refresh == Layout::carry;
    return settings.window + (before_window ? n_sp : 0);
}

std::vector<PlannedCompaction> plan_compactions(size_t raw_tokens, const MemorySettings& settings,
                                                uint32_t n_sp, const MassFunction& mass) {
    std::vector<PlannedCompaction> compactions;
    Transcript transcript;
    const size_t idle = idle_length(settings, n_sp);
    for (size_t length = next_boundary(0, settings.chunk, idle); length < raw_tokens;
         length = next_boundary(length, settings.chunk, idle)) {
        transcript.tokens.resize(length);
        move_to_distant(transcript, settings.window);
        if (settings.strategy != StrategyKind::soft_prompt) {
            transcript.distant.clear();
        } else if (transcript.distant.size() > settings.max_distant) {
            evict(transcript, mass(transcript.distant), settings.max_distant);
        }
        compactions.push_back(
            {.raw_length = length, .window_start = transcript.window_start, .kept = transcript.distant});
    }
    return compactions;
}

bool must_rebase(const Transcript& transcript, const MemorySettings& settings) {
    return transcript.next_position() + static_cast<Position>(settings.chunk) >
           static_cast<Position>(settings.max_position);
}

} // namespace spool
