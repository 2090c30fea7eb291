// Korean text for tokenizers that strip accents.
#pragma once

#include <string>

namespace spool {

/// `text` (UTF-8) with every Hangul syllable (U+AC00 to U+D7A3) written as its letters, by the arithmetic of
/// Unicode's canonical decomposition (chapter 3.12). libllama's decomposition, which it applies to strip
/// accents, leaves the syllables whole, and BERT's vocabularies know few of them.
std::string decompose_hangul(const std::string& text);

} // namespace spool
