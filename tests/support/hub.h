// A model hub on a free port of this machine, with the routes that clients of Hugging Face use, and faults.
#pragma once

#include <atomic>
#include <cpp-httplib/httplib.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/file.h"
#include "core/hash.h"
#include "core/json.h"
#include "support/temporary_folder.h"

namespace spool::test {

/// One repository, "tester/things".
class Hub {
  public:
    struct File {
        std::string content = {};
        bool large = true;     ///< listed by SHA-256, as files in LFS are; else by Git's hash
        std::string sent = {}; ///< what is sent instead, if not empty
    };

    Hub() {
        const std::string api = "/api/models/tester/things";
        server_.Get(api + "/refs", [&](const httplib::Request&, httplib::Response& response) {
            const Json refs = {{"branches", {{{"name", "main"}, {"targetCommit", commit}}}}};
            response.set_content(refs.dump(), "application/json");
        });
        server_.Get(api + "/tree/" + commit, [&](const httplib::Request&, httplib::Response& response) {
            response.set_content(tree().dump(), "application/json");
        });
        server_.Get(
            "/tester/things/resolve/" + commit + "/(.+)",
            [&](const httplib::Request& request, httplib::Response& response) { send(request, response); });
        port_ = server_.bind_to_any_port("127.0.0.1");
        thread_ = std::thread([&] { server_.listen_after_bind(); });
        server_.wait_until_ready();
    }
    ~Hub() { stop(); }
    Hub(const Hub&) = delete;
    Hub& operator=(const Hub&) = delete;

    void stop() {
        server_.stop();
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }

    const std::string commit = std::string(40, 'c');
    std::map<std::string, File> files;
    /// The next so many answers break off after `cut_after` bytes.
    std::atomic<int> cuts = 0;
    std::atomic<size_t> cut_after = 0;
    /// Bytes of content sent, and requests for content, so far.
    std::atomic<size_t> bytes_sent = 0;
    std::atomic<size_t> requests = 0;

    std::string last_authorization() const {
        const std::scoped_lock lock(mutex_);
        return authorization_;
    }

  private:
    Json tree() const {
        Json list = Json::array();
        for (const auto& [path, file] : files) {
            const TemporaryFolder folder;
            write_text(folder / "file", file.content);
            Json item = {{"type", "file"},
                         {"path", path},
                         {"size", file.content.size()},
                         {"oid", git_blob_sha1_file(folder / "file")}};
            if (file.large) {
                item["lfs"] = {{"oid", sha256_file(folder / "file")}};
            }
            list.push_back(std::move(item));
        }
        return list;
    }

    void send(const httplib::Request& request, httplib::Response& response) {
        {
            const std::scoped_lock lock(mutex_);
            authorization_ = request.get_header_value("Authorization");
        }
        const auto found = files.find(request.matches[1]);
        if (found == files.end()) {
            response.status = 404;
            return;
        }
        const std::string& content = found->second.sent.empty() ? found->second.content : found->second.sent;
        const bool head = request.method == "HEAD";
        requests += head ? 0U : 1U;
        const bool cut = !head && cuts.fetch_sub(1) > 0;
        response.set_content_provider(
            content.size(), "application/octet-stream",
            [&, cut, sent = size_t{0}](size_t offset, size_t length, httplib::DataSink& sink) mutable {
                constexpr size_t piece = 16384;
                size_t now = std::min(length, piece);
                if (cut) {
                    now = std::min(now, cut_after - std::min(cut_after.load(), sent));
                }
                sink.write(content.data() + offset, now);
                sent += now;
                bytes_sent += now;
                return !cut || sent < cut_after;
            });
    }

    httplib::Server server_;
    std::thread thread_;
    int port_ = 0;
    mutable std::mutex mutex_;
    std::string authorization_;
};

} // namespace spool::test
