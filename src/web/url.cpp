#include "web/url.h"

#include <algorithm>
#include <curl/curl.h>
#include <memory>

#include <fmt/format.h>

namespace spool {

namespace {

using Handle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

Handle new_handle() { return {curl_url(), &curl_url_cleanup}; }

std::string part(const Handle& handle, CURLUPart which, unsigned flags = 0) {
    char* text = nullptr;
    if (curl_url_get(handle.get(), which, &text, flags) != CURLUE_OK) {
        return {};
    }
    const std::unique_ptr<char, decltype(&curl_free)> owned(text, &curl_free);
    return owned.get();
}

bool set(const Handle& handle, const std::string& url) {
    // Control characters and spaces inside are encoded, as browsers do.
    return curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), CURLU_URLENCODE) == CURLUE_OK;
}

bool is_plain_web(const Handle& handle) {
    const std::string scheme = part(handle, CURLUPART_SCHEME);
    return (scheme == "http" || scheme == "https") && part(handle, CURLUPART_USER).empty() &&
           part(handle, CURLUPART_PASSWORD).empty() && !part(handle, CURLUPART_HOST).empty();
}

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    });
    return text;
}

std::string decode_query(std::string_view text) {
    std::string spaces(text);
    std::ranges::replace(spaces, '+', ' ');
    int size = 0;
    const std::unique_ptr<char, decltype(&curl_free)> decoded(
        curl_easy_unescape(nullptr, spaces.c_str(), static_cast<int>(spaces.size()), &size), &curl_free);
    return decoded ? std::string(decoded.get(), static_cast<size_t>(size)) : std::string();
}

} // namespace

std::optional<WebUrl> parse_url(const std::string& url) {
    const Handle handle = new_handle();
    if (!set(handle, url) || !is_plain_web(handle)) {
        return std::nullopt;
    }
    return WebUrl{.scheme = part(handle, CURLUPART_SCHEME),
                  .host = lower(part(handle, CURLUPART_HOST)),
                  .port = part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT),
                  .path = part(handle, CURLUPART_PATH),
                  .query = part(handle, CURLUPART_QUERY)};
}

std::optional<std::string> resolve_url(const std::string& base, const std::string& reference) {
    const Handle handle = new_handle();
    if (!set(handle, base) || (!reference.empty() && !set(handle, reference)) || !is_plain_web(handle)) {
        return std::nullopt;
    }
    curl_url_set(handle.get(), CURLUPART_FRAGMENT, nullptr, 0);
    return part(handle, CURLUPART_URL);
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
    while (!query.empty()) {
        const size_t end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        const size_t equals = std::min(pair.find('='), pair.size());
        if (pair.substr(0, equals) == name) {
            return decode_query(pair.substr(std::min(equals + 1, pair.size())));
        }
    }
    return std::nullopt;
}

std::string url_with_query(const std::string& base,
                           const std::vector<std::pair<std::string, std::string>>& values) {
    std::string url = base;
    for (const auto& [name, value] : values) {
        url += url.find('?') == std::string::npos ? '?' : '&';
        url += name + "=" + percent_encode(value);
    }
    return url;
}

std::string percent_encode(std::string_view text, std::string_view kept) {
    std::string encoded;
    encoded.reserve(text.size());
    for (const char character : text) {
        const bool plain = (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
                           (character >= '0' && character <= '9') ||
                           std::string_view("-._~").find(character) != std::string_view::npos;
        if (plain || kept.find(character) != std::string_view::npos) {
            encoded += character;
        } else {
            encoded += fmt::format("%{:02X}", static_cast<unsigned char>(character));
        }
    }
    return encoded;
}

std::string same_page_key(const std::string& url) {
    const auto parts = parse_url(url);
    if (!parts) {
        return url;
    }
    std::string_view host = parts->host;
    if (host.starts_with("www.")) {
        host.remove_prefix(4);
    }
    std::string_view path = parts->path;
    while (path.ends_with('/')) {
        path.remove_suffix(1);
    }
    const bool usual_port = parts->port == (parts->scheme == "https" ? "443" : "80");
    return fmt::format("{}{}{}{}{}", host, usual_port ? "" : ":" + parts->port, path,
                       parts->query.empty() ? "" : "?", parts->query);
}

} // namespace spool
