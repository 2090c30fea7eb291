// Text from nothing: plain English sentences from word lists, to fill synthetic traces with where no natural
// text is at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace spool {

/// Paragraphs of at least `bytes` bytes in all. No numbers occur in them. The same seed makes the same text.
std::string made_up_text(size_t bytes, uint64_t seed);

} // namespace spool
