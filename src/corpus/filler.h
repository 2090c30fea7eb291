// Text that stands between the lines of a synthetic trace, measured out in tokens.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "corpus/encoder.h"

namespace spool {

/// Ids of `text` when it begins a line inside a longer text. `text` must not begin with white space. Throws
/// Error{unsupported} for a tokenizer that merges across a line's start.
std::vector<Token> line_tokens(const Encoder& encoder, const std::string& text);

/// All texts of each split, one behind the other.
class Filler {
  public:
    /// Reads the field `text`, else `think`, of JSON Lines (plain, gzip, zstd), up to 64 MiB; texts that hold
    /// think tags are skipped. Of each text the last `val_share` is for validation, so that none of it
    /// trains. Throws Error{bad_file} naming `path` if that leaves nothing to read.
    Filler(const std::filesystem::path& path, const ThinkTags& tags, double val_share);
    /// Made-up sentences, other ones for validation.
    Filler();

    const std::string& text(bool validation) const { return validation && !val_.empty() ? val_ : train_; }

  private:
    void add(std::string_view text, double val_share);

    std::string train_;
    std::string val_;
};

/// Reads on through the filler from a random place, round and round.
class FillerReader {
  public:
    /// `text` must outlive the reader and hold a word.
    FillerReader(const std::string& text, Random& random);

    /// Lines of whole words that are exactly `tokens` tokens long, the newline at the end included. Words
    /// that do not fit are skipped. Throws Error{unsupported} if no place in the text yields that length.
    std::string take(const Encoder& encoder, size_t tokens);

  private:
    std::string window(size_t bytes) const;
    void skip_word();

    const std::string& text_;
    size_t position_ = 0; ///< of a word's first byte
};

} // namespace spool
