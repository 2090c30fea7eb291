// What may be shown of a stranger's text: one line of visible characters.
#pragma once

#include <string>
#include <string_view>

namespace spool {

/// White space (the no-break space too) becomes one space, none at the ends. Left out: control characters,
/// which a terminal would obey, and invisible ones that hide or reorder text (bidirectional controls, tags).
std::string plain_line(std::string_view text);

/// The same characters left out, line ends and other white space kept.
std::string without_controls(std::string_view text);

} // namespace spool
