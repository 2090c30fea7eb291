#include "context/schedule.h"

#include <algorithm>

namespace spool {

size_t next_boundary(size_t raw_length, size_t chunk, size_t idle) {
    return (std::max(raw_length, idle) / chunk + 1) * chunk;
}

bool must_rebase(const Transcript& transcript, const MemorySettings& settings) {
    return transcript.next_position() + static_cast<Position>(settings.chunk) >
           static_cast<Position>(settings.max_position);
}

} // namespace spool
