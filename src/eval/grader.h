// Is an answer right? Compared by value: 1/2, 0.5, 50% of 1 and \frac{1}{2} are one number, units and
// thousands separators aside.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spool {

/// What stands in the last \boxed{...} (or \fbox) of `text`, nested braces kept; nullopt if none is closed.
std::optional<std::string> last_box(std::string_view text);

/// True if `given` states the value of `expected`. Numbers are compared exactly, as fractions; one number may
/// stand with or without its unit, but not with another unit; several numbers with words ("23 chickens and 7
/// cows") match by their words, or else in order. What holds no numbers is compared as text or LaTeX.
bool same_answer(std::string_view given, std::string_view expected);

} // namespace spool
