// One HTTP GET to the outside: public addresses only, within limits of size, time and kind.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace spool {

struct HttpOptions {
    /// The one name under which everything is asked for; add whom to write to: "spool (me@example.org)".
    std::string user_agent = "spool";
    /// "127.0.0.1:8081", "[::1]:80": addresses that may be asked although they are not public.
    std::vector<std::string> allowed = {};
    std::chrono::milliseconds connect_timeout{8'000};
    std::chrono::milliseconds timeout{20'000};
    size_t max_bytes = size_t{4} << 20; ///< of the body, unpacked
    int max_redirects = 5;
    const std::atomic<bool>* interrupted = nullptr;
};

struct HttpRequest {
    std::string url;
    /// Prefixes of the content types that a reply of status 200 may have, "text/"; empty: any.
    std::vector<std::string> types = {};
    std::string accept_language = "en";
};

struct HttpReply {
    int status = 0;
    std::string url;          ///< after the redirects
    std::string content_type; ///< as the server sent it
    std::string body;         ///< unpacked; its character set is the server's
    /// What the server asks to wait for before the next request.
    std::optional<std::chrono::seconds> retry_after;
};

/// Throws Error{invalid_argument} for what is no http(s) URL, Error{unsupported} for what is refused (an
/// address that is not public, wherever a name or a redirect leads; another kind of content; more than
/// max_bytes), Error{io} for what may succeed later (no answer, a broken connection, too slow),
/// Error{interrupted}. Each names the URL. Any status is a reply. Neither cookies nor proxies are used:
/// behind a proxy the address cannot be checked.
HttpReply http_get(const HttpRequest& request, const HttpOptions& options);

} // namespace spool
