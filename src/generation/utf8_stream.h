// Text that arrives in pieces of bytes, released only in whole UTF-8 characters.
#pragma once

#include <string>
#include <string_view>

namespace spool {

class Utf8Stream {
  public:
    /// Adds bytes and returns what is complete; an unfinished character at the end waits for the next call.
    std::string push(std::string_view bytes);
    /// What still waits (an unfinished character when generation ended), replaced by U+FFFD if not empty.
    std::string finish();

  private:
    std::string pending_;
};

/// How many bytes at the end of `text` belong to a UTF-8 character that is not complete yet: 0 to 3.
size_t incomplete_utf8_tail(std::string_view text);

} // namespace spool
