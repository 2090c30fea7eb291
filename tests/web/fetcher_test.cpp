// Asking again: after what, how long after, how often.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "local_site.h"
#include "support/expect_error.h"
#include "web/fetcher.h"

namespace spool::test {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// Answers `statuses` one after another, then 200.
class Moody {
  public:
    explicit Moody(std::vector<int> statuses, const std::string& retry_after = "") {
        site_.server().Get("/", [this, statuses = std::move(statuses),
                                 retry_after](const httplib::Request&, httplib::Response& response) {
            const auto count = static_cast<size_t>(site_.requests++);
            response.status = count < statuses.size() ? statuses[count] : 200;
            if (response.status != 200 && !retry_after.empty()) {
                response.set_header("Retry-After", retry_after);
            }
            response.set_content("text", "text/plain");
        });
        site_.start();
    }
    HttpReply ask(FetchOptions options) {
        Fetcher fetcher(std::move(options));
        return fetcher.get({.url = site_.url("/")});
    }
    HttpReply ask() { return ask(site_.quick()); }
    LocalSite& site() { return site_; }
    int requests() const { return site_.requests; }

  private:
    LocalSite site_;
};

milliseconds since(steady_clock::time_point begun) {
    return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begun);
}

} // namespace

TEST(Fetcher, AsksAgainWhenTheHostIsBusy) {
    for (const int status : {429, 500, 502, 503, 504}) {
        Moody host({status, status});
        EXPECT_EQ(host.ask().status, 200) << status;
        EXPECT_EQ(host.requests(), 3) << status;
    }
}

TEST(Fetcher, ReturnsTheLastReplyOfABusyHost) {
    Moody host({503, 503, 503, 503});
    EXPECT_EQ(host.ask().status, 503);
    EXPECT_EQ(host.requests(), 3);
}

TEST(Fetcher, DoesNotInsistAfterOtherStatuses) {
    for (const int status : {202, 403, 404, 501}) {
        Moody host({status});
        EXPECT_EQ(host.ask().status, status);
        EXPECT_EQ(host.requests(), 1) << status;
    }
}

TEST(Fetcher, WaitsAsLongAsRetryAfterSays) {
    Moody host({429}, "1");
    const auto begun = steady_clock::now();
    EXPECT_EQ(host.ask().status, 200);
    EXPECT_GE(since(begun), seconds(1));
}

TEST(Fetcher, DoesNotWaitLongerThanItsLimit) {
    Moody host({503}, "3600");
    const auto begun = steady_clock::now();
    const HttpReply reply = host.ask();
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.retry_after, seconds(3600));
    EXPECT_EQ(host.requests(), 1);
    EXPECT_LT(since(begun), seconds(5));
}

TEST(Fetcher, BacksOffForTwiceAsLongEachTime) {
    Moody host({500, 500, 500});
    FetchOptions options = host.site().quick();
    options.attempts = 4;
    options.first_wait = milliseconds(100);
    const auto begun = steady_clock::now();
    EXPECT_EQ(host.ask(options).status, 200);
    EXPECT_GE(since(begun), milliseconds((100 + 200 + 400) / 2)) << "each wait is half of it at least";
}

TEST(Fetcher, TriesABrokenConnectionAgain) {
    LocalSite site;
    site.server().Get("/", [&](const httplib::Request&, httplib::Response& response) {
        response.set_content_provider(1'000, "text/plain", [&](size_t, size_t, httplib::DataSink& sink) {
            sink.write("half", 4);
            return ++site.requests > 1 ? sink.write(std::string(996, 'x').data(), 996) : false;
        });
    });
    site.start();
    Fetcher fetcher(site.quick());
    EXPECT_EQ(fetcher.get({.url = site.url("/")}).body.size(), 1'000);
    EXPECT_EQ(site.requests, 2);
}

TEST(Fetcher, DoesNotRepeatWhatIsRefused) {
    LocalSite site;
    site.page("/", "text", "video/mp4");
    site.start();
    Fetcher fetcher(site.quick());
    expect_error(ErrorCode::unsupported, {"video/mp4"},
                 [&] { (void)fetcher.get({.url = site.url("/"), .types = {"text/"}}); });
    EXPECT_EQ(site.requests, 1);
}

TEST(Fetcher, SpacesItsRequestsToAHostFromAllThreads) {
    LocalSite site;
    LocalSite other;
    site.page("/", "text");
    other.page("/", "text");
    site.start();
    other.start();
    FetchOptions options = site.quick();
    options.http.allowed.push_back(other.address());
    options.spacing = milliseconds(150);
    Fetcher fetcher(options);
    const auto begun = steady_clock::now();
    (void)fetcher.get({.url = other.url("/")});
    EXPECT_LT(since(begun), milliseconds(150)) << "the first one waits for nobody";
    std::vector<std::thread> threads(3);
    for (std::thread& thread : threads) {
        thread = std::thread([&] { (void)fetcher.get({.url = site.url("/")}); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_GE(since(begun), milliseconds(300));
    EXPECT_EQ(site.requests, 3);
}

TEST(Fetcher, StopsWaitingWhenInterrupted) {
    std::atomic<bool> interrupted{false};
    Moody host({503}, "10");
    FetchOptions options = host.site().quick();
    options.http.interrupted = &interrupted;
    std::thread user([&] {
        std::this_thread::sleep_for(milliseconds(200));
        interrupted = true;
    });
    const auto begun = steady_clock::now();
    expect_error(ErrorCode::interrupted, {"stopped"}, [&] { (void)host.ask(options); });
    EXPECT_LT(since(begun), seconds(5));
    user.join();
}

} // namespace spool::test
