#include "generation/announce.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "core/log.h"
#include "core/progress.h"

namespace spool {

namespace {

/// A field of /proc/self/status such as "RssAnon:", in bytes; 0 where there is no such file.
size_t status_bytes(const std::string& field) {
    std::ifstream status("/proc/self/status");
    std::string name;
    while (status >> name) {
        if (name == field) {
            size_t kilobytes = 0;
            status >> kilobytes;
            return kilobytes * 1024;
        }
        status.ignore(4096, '\n');
    }
    return 0;
}

} // namespace

size_t announce_memory(SessionPool& pool, size_t copies, size_t others) {
    // Code, libraries and allocator slack, and what 20,000 tokens of transcript and text add.
    constexpr size_t program = size_t{24} << 20U;
    const PoolMemory& memory = pool.memory();
    const size_t model_file = std::filesystem::file_size(pool.model().path());
    // Already counted in the anonymous memory of this moment: the vocabulary, the KV cache (cleared when
    // made), the pooler's weights. Still to come: pages of the mapped model, graph scratch, the pooler's
    // scratch.
    const size_t copy = memory.kv / pool.options().sessions +
                        static_cast<size_t>(pool.model().facts().vocab_size) * sizeof(float);
    const size_t bound = status_bytes("RssAnon:") + model_file + memory.compute + memory.pooler_scratch +
                         copies * copy + others + program;
    const MemorySettings& s = pool.settings();
    log_info("memory: model {} + KV {} ({} cells for pin {} + window {} + chunk {}) + compute {} + pooler {} "
             "+ copies {}{}; at most {} resident, however long it runs",
             format_bytes(static_cast<double>(memory.model)), format_bytes(static_cast<double>(memory.kv)),
             memory.cells, s.pin, s.window, s.chunk, format_bytes(static_cast<double>(memory.compute)),
             format_bytes(static_cast<double>(memory.pooler_weights + memory.pooler_scratch)),
             format_bytes(static_cast<double>(copies * copy)),
             others == 0 ? "" : " + others " + format_bytes(static_cast<double>(others)),
             format_bytes(static_cast<double>(bound)));
    return bound;
}

} // namespace spool
