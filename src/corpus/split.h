// Which split a prompt belongs to: a property of its text alone, so that no validation prompt trains,
// whatever the order of the files, and whatever corpus it came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "corpus/trace.h"

namespace spool {

/// The number in [0, 1) that decides: SHA-256's first 53 bits. Case and white space do not count.
double split_position(std::string_view text);

/// What decides for a trace: its first user message.
const std::string& split_key(const std::vector<Message>& messages);

/// True if `text` belongs to validation. A larger share keeps what a smaller one held.
inline bool is_validation(std::string_view text, double val_share) {
    return split_position(text) < val_share;
}

} // namespace spool
