#include "web/fetcher.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "core/error.h"
#include "web/url.h"

namespace spool {

namespace {

bool is_busy(int status) {
    constexpr std::array<int, 5> busy = {429, 500, 502, 503, 504};
    return std::ranges::find(busy, status) != busy.end();
}

} // namespace

Fetcher::Fetcher(FetchOptions options) : options_(std::move(options)), random_(options_.seed) {}

HttpReply Fetcher::get(const HttpRequest& request) {
    const auto url = parse_url(request.url);
    auto backoff = options_.first_wait;
    for (int attempt = 1;; ++attempt, backoff *= 2) {
        if (url) {
            wait_for_turn(url->host + ":" + url->port);
        }
        std::chrono::milliseconds asked{0};
        try {
            HttpReply reply = http_get(request, options_.http);
            asked = reply.retry_after.value_or(std::chrono::seconds(0));
            if (!is_busy(reply.status) || attempt >= options_.attempts || asked > options_.longest_wait) {
                return reply;
            }
        } catch (const Error& error) {
            if (error.code() != ErrorCode::io || attempt >= options_.attempts) {
                throw;
            }
        }
        sleep_until(Clock::now() + asked + jitter(backoff), request.url);
    }
}

std::chrono::milliseconds Fetcher::jitter(std::chrono::milliseconds wait) {
    const std::scoped_lock lock(mutex_);
    return std::chrono::milliseconds(
        wait.count() / 2 + static_cast<int64_t>(random_.below(static_cast<uint64_t>(wait.count() / 2) + 1)));
}

/// Each caller takes the host's next free start, so that none is passed by.
void Fetcher::wait_for_turn(const std::string& host) {
    Clock::time_point start = Clock::now();
    {
        const std::scoped_lock lock(mutex_);
        auto& next = next_start_[host];
        start = std::max(start, next);
        next = start + options_.spacing;
    }
    sleep_until(start, host);
}

void Fetcher::sleep_until(Clock::time_point end, const std::string& url) const {
    constexpr std::chrono::milliseconds step{50};
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
        if (options_.http.interrupted != nullptr && *options_.http.interrupted) {
            fail(ErrorCode::interrupted, "{}: stopped", url);
        }
        std::this_thread::sleep_for(std::min<Clock::duration>(step, end - now));
    }
}

} // namespace spool
