#include "web/http.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <curl/curl.h>
#include <exception>
#include <memory>
#include <mutex>
#include <sys/socket.h>
#include <utility>

#include "core/error.h"
#include "web/address.h"
#include "web/url.h"

namespace spool {

namespace {

struct FreeCurl {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, FreeCurl>;

struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

/// What libcurl's callbacks share. They cannot throw through C: what they refuse is kept and thrown
/// afterwards.
struct Transfer {
    const HttpRequest* request;
    const HttpOptions* options;
    CURL* handle;
    std::string body = {};
    std::string refusal = {};
    bool out_of_memory = false;
};

template <typename Value>
void set(CURL* handle, CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(handle, option, value);
    if (code != CURLE_OK) {
        fail(ErrorCode::internal, "libcurl refuses option {}: {}", static_cast<int>(option),
             curl_easy_strerror(code));
    }
}

std::string content_type(CURL* handle) {
    const char* type = nullptr;
    curl_easy_getinfo(handle, CURLINFO_CONTENT_TYPE, &type);
    return type == nullptr ? std::string() : std::string(type);
}

int status(CURL* handle) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
}

std::string final_url(CURL* handle, const std::string& asked) {
    const char* url = nullptr;
    curl_easy_getinfo(handle, CURLINFO_EFFECTIVE_URL, &url);
    return url == nullptr ? asked : std::string(url);
}

bool is_wanted(const std::string& type, const std::vector<std::string>& wanted) {
    std::string lower = type;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    return wanted.empty() ||
           std::ranges::any_of(wanted, [&](const std::string& prefix) { return lower.starts_with(prefix); });
}

/// Called for every connection with the address that the name led to: also for each redirect.
curl_socket_t open_socket(void* user, curlsocktype /*purpose*/, curl_sockaddr* address) {
    auto& transfer = *static_cast<Transfer*>(user);
    if (const auto refused = refused_address(address->addr)) {
        const bool bracketed = address->family == AF_INET6;
        const std::string named = fmt::format("{}{}{}:{}", bracketed ? "[" : "", refused->address,
                                              bracketed ? "]" : "", port_of(address->addr));
        if (std::ranges::find(transfer.options->allowed, named) == transfer.options->allowed.end()) {
            transfer.refusal =
                fmt::format("leads to {}, a {} address; only public ones are asked", named, refused->kind);
            return CURL_SOCKET_BAD;
        }
    }
    return socket(address->family, address->socktype, address->protocol);
}

size_t receive(const char* bytes, size_t one, size_t count, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    const size_t size = one * count;
    if (transfer.body.empty() && status(transfer.handle) == 200) {
        if (const auto type = content_type(transfer.handle); !is_wanted(type, transfer.request->types)) {
            transfer.refusal =
                fmt::format("is of the type '{}', which is not read", type.empty() ? "none" : type);
            return 0;
        }
    }
    if (transfer.body.size() + size > transfer.options->max_bytes) {
        transfer.refusal = fmt::format("is larger than {} bytes unpacked", transfer.options->max_bytes);
        return 0;
    }
    try {
        transfer.body.append(bytes, size);
    } catch (const std::exception&) {
        transfer.out_of_memory = true;
        return 0;
    }
    return size;
}

int progress(void* user, curl_off_t /*total*/, curl_off_t /*now*/, curl_off_t /*up*/, curl_off_t /*sent*/) {
    const auto* interrupted = static_cast<Transfer*>(user)->options->interrupted;
    return interrupted != nullptr && *interrupted ? 1 : 0;
}

void prepare(CURL* handle, Transfer& transfer, curl_slist* headers) {
    const HttpOptions& options = *transfer.options;
    set(handle, CURLOPT_URL, transfer.request->url.c_str());
    set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    set(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(handle, CURLOPT_FOLLOWLOCATION, 1L);
    set(handle, CURLOPT_MAXREDIRS, static_cast<long>(options.max_redirects));
    set(handle, CURLOPT_AUTOREFERER, 0L);
    set(handle, CURLOPT_PROXY, "");
    set(handle, CURLOPT_USERAGENT, options.user_agent.c_str());
    set(handle, CURLOPT_HTTPHEADER, headers);
    set(handle, CURLOPT_ACCEPT_ENCODING, "");
    set(handle, CURLOPT_NOSIGNAL, 1L);
    set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
    set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
    set(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    set(handle, CURLOPT_OPENSOCKETDATA, &transfer);
    set(handle, CURLOPT_WRITEFUNCTION, receive);
    set(handle, CURLOPT_WRITEDATA, &transfer);
    set(handle, CURLOPT_NOPROGRESS, 0L);
    set(handle, CURLOPT_XFERINFOFUNCTION, progress);
    set(handle, CURLOPT_XFERINFODATA, &transfer);
}

void check(CURLcode code, const Transfer& transfer, const std::string& reason) {
    const std::string& url = transfer.request->url;
    if (!transfer.refusal.empty()) {
        fail(ErrorCode::unsupported, "{}: {}", url, transfer.refusal);
    }
    if (transfer.out_of_memory) {
        fail(ErrorCode::out_of_memory, "{}: no memory for its {} bytes", url, transfer.body.size());
    }
    switch (code) {
    case CURLE_OK:
        return;
    case CURLE_ABORTED_BY_CALLBACK:
        fail(ErrorCode::interrupted, "{}: stopped", url);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        fail(ErrorCode::unsupported, "{}: leads to something other than http or https", url);
    case CURLE_TOO_MANY_REDIRECTS:
        fail(ErrorCode::unsupported, "{}: redirects more than {} times", url,
             transfer.options->max_redirects);
    default:
        fail(ErrorCode::io, "{}: {}", url, reason.empty() ? curl_easy_strerror(code) : reason.c_str());
    }
}

} // namespace

HttpReply http_get(const HttpRequest& request, const HttpOptions& options) {
    if (!parse_url(request.url)) {
        fail(ErrorCode::invalid_argument, "'{}' is no http or https URL", request.url);
    }
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    const Handle handle(curl_easy_init());
    if (!handle) {
        fail(ErrorCode::out_of_memory, "libcurl has no memory for a request");
    }
    const HeaderList headers(
        curl_slist_append(nullptr, ("Accept-Language: " + request.accept_language).c_str()));
    Transfer transfer{.request = &request, .options = &options, .handle = handle.get()};
    prepare(handle.get(), transfer, headers.get());
    std::array<char, CURL_ERROR_SIZE> reason{};
    set(handle.get(), CURLOPT_ERRORBUFFER, reason.data());
    check(curl_easy_perform(handle.get()), transfer, reason.data());

    HttpReply reply{.status = status(handle.get()),
                    .url = final_url(handle.get(), request.url),
                    .content_type = content_type(handle.get()),
                    .body = std::move(transfer.body),
                    .retry_after = std::nullopt};
    curl_off_t seconds = 0;
    if (curl_easy_getinfo(handle.get(), CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0) {
        reply.retry_after = std::chrono::seconds(seconds);
    }
    return reply;
}

} // namespace spool
