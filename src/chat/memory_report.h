// What a conversation still holds, and how: the answer to `/why`.
#pragma once

#include <cstddef>
#include <string>

#include "core/json.h"
#include "llm/tokenizer.h"
#include "memory/settings.h"
#include "memory/transcript.h"

namespace spool {

struct MemoryReport {
    size_t tokens = 0; ///< read and written so far
    size_t pinned = 0;
    size_t compressed = 0; ///< outside the window, read through `vectors`
    size_t vectors = 0;    ///< soft-prompt vectors or slots in the cache
    size_t evicted = 0;    ///< gone
    size_t window = 0;
    std::string compressed_begins; ///< the text's first words, each cut to a line
    std::string window_begins;
};

MemoryReport report_memory(const Transcript& transcript, const MemorySettings& settings,
                           const Tokenizer& tokenizer);

/// Lines for people.
std::string to_text(const MemoryReport& report);
Json to_json(const MemoryReport& report);

} // namespace spool
