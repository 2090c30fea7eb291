// Text in the encodings of the web, as UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spool {

/// The charset in "text/html; charset=UTF-8", lower case; empty if none is named.
std::string charset_parameter(std::string_view content_type);

/// `bytes` as UTF-8. The order of belief: a byte order mark; `declared` (of the HTTP header); if `html`, what
/// the page's meta element says; UTF-8 if the bytes are that; windows-1252. A charset that is unknown or that
/// the bytes contradict is passed over, and bytes that are UTF-8 are not taken for a single-byte charset.
/// What can not be decoded becomes U+FFFD.
std::string to_utf8(std::string_view bytes, const std::string& declared, bool html);

} // namespace spool
