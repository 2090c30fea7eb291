// Polite requests: one at a time and spaced for each host, again later when the host is busy.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core/random.h"
#include "web/http.h"

namespace spool {

struct FetchOptions {
    HttpOptions http = {};
    int attempts = 3;
    std::chrono::milliseconds spacing{1'000};    ///< between the starts of two requests to a host
    std::chrono::milliseconds first_wait{1'000}; ///< before the second attempt; doubled for each one after it
    /// Longer waits are not waited for: the reply that asks for one is returned.
    std::chrono::milliseconds longest_wait{15'000};
    uint64_t seed = 1; ///< of the jitter: each wait is drawn from half of it to the whole
};

class Fetcher {
  public:
    explicit Fetcher(FetchOptions options);

    /// http_get; after Error{io} or a status of 429, 500, 502, 503 or 504 it waits, at least as long as
    /// Retry-After says, and asks again. What the last attempt gave is returned or thrown. May be called by
    /// several threads.
    HttpReply get(const HttpRequest& request);

    /// Waits until `host` ("name:port") may be asked again and takes that turn; get() does so by itself.
    void wait_for_turn(const std::string& host);

    const FetchOptions& options() const { return options_; }

  private:
    using Clock = std::chrono::steady_clock;

    std::chrono::milliseconds jitter(std::chrono::milliseconds wait);
    void sleep_until(Clock::time_point end, const std::string& url) const;

    FetchOptions options_;
    std::mutex mutex_;
    Random random_;
    std::map<std::string, Clock::time_point> next_start_; ///< by host and port
};

} // namespace spool
