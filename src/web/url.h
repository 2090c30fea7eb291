// URLs, by libcurl's parser: the one that also makes the requests, so that both read them alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spool {

struct WebUrl {
    std::string scheme; ///< lower case
    std::string host;   ///< lower case, without port; an IPv6 address in brackets
    std::string port;   ///< the scheme's own if the URL has none
    std::string path;
    std::string query; ///< still encoded, without the question mark
};

/// The parts of an absolute http or https URL without user and password; nothing for any other text.
std::optional<WebUrl> parse_url(const std::string& url);
/// `reference` as seen on the page `base`, as an absolute http(s) URL without fragment; nothing if it is
/// none.
std::optional<std::string> resolve_url(const std::string& base, const std::string& reference);
/// The decoded value of the first `name` in a query; nothing if there is none.
std::optional<std::string> query_value(std::string_view query, std::string_view name);
/// `base`?name=value&...; names are taken as they are, values are encoded. `base` may have a query already.
std::string url_with_query(const std::string& base,
                           const std::vector<std::pair<std::string, std::string>>& values);
/// Percent-encodes all but letters, digits, "-._~" and the characters of `kept`.
std::string percent_encode(std::string_view text, std::string_view kept = {});
/// "https://Example.org/a/?b#c" and "http://www.example.org/a?b" name the same page: the text they have in
/// common. What is no URL is returned as it is.
std::string same_page_key(const std::string& url);

} // namespace spool
