// Web servers on a free port of this machine, well-behaved or not.
#pragma once

#include <atomic>
#include <chrono>
#include <cpp-httplib/httplib.h>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "web/fetcher.h"

namespace spool::test {

class LocalSite {
  public:
    LocalSite() { port_ = server_.bind_to_any_port("127.0.0.1"); }
    ~LocalSite() {
        server_.stop();
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    LocalSite(const LocalSite&) = delete;
    LocalSite& operator=(const LocalSite&) = delete;

    httplib::Server& server() { return server_; }
    /// After the routes are set.
    void start() {
        thread_ = std::thread([this] { server_.listen_after_bind(); });
        server_.wait_until_ready();
    }
    /// `path` answers `body`, as HTML unless another type is given; counts.
    void page(const std::string& path, const std::string& body,
              const std::string& type = "text/html; charset=utf-8", int status = 200) {
        server_.Get(path, [this, body, type, status](const httplib::Request&, httplib::Response& response) {
            ++requests;
            response.status = status;
            response.set_content(body, type);
        });
    }
    std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
    std::string url(const std::string& path = "") const { return "http://" + address() + path; }
    /// The same server, for a client another host.
    std::string other_name(const std::string& path) const {
        return fmt::format("http://localhost:{}{}", port_, path);
    }

    /// Options that may ask this server alone, and do not wait.
    FetchOptions quick() const {
        FetchOptions options;
        options.http.allowed = {address()};
        options.http.timeout = std::chrono::milliseconds(2'000);
        options.spacing = std::chrono::milliseconds(0);
        options.first_wait = std::chrono::milliseconds(2);
        return options;
    }

    std::atomic<int> requests{0};

  private:
    httplib::Server server_;
    std::thread thread_;
    int port_ = 0;
};

} // namespace spool::test
