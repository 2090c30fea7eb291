#include "web/browser.h"

#include <cpp-httplib/httplib.h>
#include <optional>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "web/child_process.h"

namespace spool {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Json capabilities() {
    Json arguments = {"--headless=new",
                      "--disable-gpu",
                      "--disable-quic",
                      "--no-first-run",
                      "--disable-background-networking",
                      "--disable-component-update",
                      "--disable-sync",
                      "--disable-dev-shm-usage",
                      "--blink-settings=imagesEnabled=false"};
    if (::geteuid() == 0) { // Chromium's sandbox refuses to run as root
        arguments.push_back("--no-sandbox");
    }
    return {{"capabilities",
             {{"alwaysMatch",
               {{"browserName", "chrome"},
                {"pageLoadStrategy", "none"}, // so that waiting can be interrupted
                {"goog:chromeOptions", {{"args", std::move(arguments)}}}}}}}};
}

/// A driver's process and one session with it: a browser with an empty profile.
class Session {
  public:
    explicit Session(const BrowserOptions& options)
        : options_(options), end_(Clock::now() + options.timeout), driver_({options.driver, "--port=0"}),
          http_("127.0.0.1", port()) {
        http_.set_read_timeout(options.timeout);
        const Json started = command("POST", "/session", capabilities());
        if (!started.is_object() || !started["sessionId"].is_string()) {
            fail(ErrorCode::unsupported, "{}: the browser does not start", options_.driver);
        }
        path_ = "/session/" + started["sessionId"].get<std::string>();
    }
    ~Session() {
        if (!path_.empty()) {
            (void)http_.Delete(path_); // ends the browser and removes its profile
        }
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    BrowserPage open(const std::string& url) {
        command("POST", path_ + "/url", {{"url", url}});
        for (;;) {
            // The driver's own idea of the address stays the one asked for when an error page is shown.
            const std::string shown = script("return document.URL");
            if (shown.starts_with("chrome-error:")) {
                fail(ErrorCode::io, "{}: the browser cannot reach it", url);
            }
            if (shown.starts_with("http") && script("return document.readyState") == "complete") {
                return {.url = shown, .html = text(command("GET", path_ + "/source"))};
            }
            wait(milliseconds(100), url);
        }
    }

  private:
    /// The driver says where it listens: "... was started successfully on port 39103."
    int port() {
        while (const auto line = driver_.read_line(milliseconds(10'000))) {
            constexpr std::string_view before = "successfully on port ";
            if (const size_t at = line->find(before); at != std::string::npos) {
                return std::stoi(line->substr(at + before.size()));
            }
        }
        fail(ErrorCode::unsupported, "{} does not say on which port it listens; expected chromedriver",
             options_.driver);
    }

    std::string script(const std::string& source) {
        return text(command("POST", path_ + "/execute/sync", {{"script", source}, {"args", Json::array()}}));
    }

    static std::string text(const Json& value) {
        return value.is_string() ? value.get<std::string>() : std::string();
    }

    /// The `value` of the driver's answer.
    Json command(const std::string& method, const std::string& path, const Json& body = {}) {
        const auto result =
            method == "GET" ? http_.Get(path) : http_.Post(path, body.dump(), "application/json");
        if (!result) {
            fail(ErrorCode::io, "{} does not answer: {}", options_.driver,
                 httplib::to_string(result.error()));
        }
        const Json answer = Json::parse(result->body, nullptr, false);
        if (!answer.is_object() || !answer.contains("value")) {
            fail(ErrorCode::io, "{} answers something other than WebDriver's JSON (HTTP {})", options_.driver,
                 result->status);
        }
        const Json& value = answer["value"];
        if (result->status != 200) {
            const std::string reason =
                value.is_object() ? text(value.value("message", Json())) : std::string();
            fail(path == "/session" ? ErrorCode::unsupported : ErrorCode::io, "{}: {}", options_.driver,
                 reason.substr(0, reason.find('\n')));
        }
        return value;
    }

    void wait(milliseconds time, const std::string& url) const {
        if (options_.interrupted != nullptr && *options_.interrupted) {
            fail(ErrorCode::interrupted, "{}: stopped", url);
        }
        if (Clock::now() > end_) {
            fail(ErrorCode::io, "{}: not there after {} ms", url, options_.timeout.count());
        }
        std::this_thread::sleep_for(time);
    }

    BrowserOptions options_;
    Clock::time_point end_;
    ChildProcess driver_;
    httplib::Client http_;
    std::string path_;
};

} // namespace

BrowserPage browse(const std::string& url, const BrowserOptions& options) {
    return Session(options).open(url);
}

} // namespace spool
