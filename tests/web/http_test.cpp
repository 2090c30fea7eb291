// Requests to servers that are slow, endless, too large, of another kind, or lead elsewhere.
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <zlib.h>

#include "local_site.h"
#include "support/expect_error.h"
#include "web/http.h"

namespace spool::test {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string gzip(const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string packed(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

/// Sends a byte every `pause` for as long as somebody reads.
httplib::Server::Handler drip(milliseconds pause) {
    return [=](const httplib::Request&, httplib::Response& response) {
        response.set_chunked_content_provider("text/html", [=](size_t, httplib::DataSink& sink) {
            std::this_thread::sleep_for(pause);
            return sink.write("x", 1);
        });
    };
}

class HttpGet : public testing::Test {
  protected:
    HttpReply get(const std::string& path, std::vector<std::string> types = {}) {
        return http_get({.url = site_.url(path), .types = std::move(types)}, site_.quick().http);
    }
    void redirect(const std::string& path, const std::string& target) {
        site_.server().Get(path, [=](const httplib::Request&, httplib::Response& response) {
            response.set_redirect(target);
        });
    }

    LocalSite site_;
};

} // namespace

TEST_F(HttpGet, GivesStatusTypeAndBodyAfterRedirects) {
    site_.page("/page", "<p>Text</p>");
    redirect("/old", "/page");
    site_.page("/gone", "no more", "text/plain", 410);
    site_.start();
    const HttpReply reply = get("/old");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.url, site_.url("/page"));
    EXPECT_EQ(reply.content_type, "text/html; charset=utf-8");
    EXPECT_EQ(reply.body, "<p>Text</p>");
    EXPECT_EQ(get("/gone", {"text/html"}).status, 410) << "the kind of an error page does not matter";
}

TEST_F(HttpGet, AsksPublicAddressesOnly) {
    site_.page("/page", "secret");
    site_.start();
    for (const std::string host :
         {"127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"}) {
        const std::string url =
            "http://" + host + site_.url("/page").substr(std::string("http://127.0.0.1").size());
        expect_error(ErrorCode::unsupported, {"only public ones"}, [&] { http_get({.url = url}, {}); });
    }
    EXPECT_EQ(site_.requests, 0);
    expect_error(ErrorCode::unsupported, {"cloud metadata"},
                 [] { http_get({.url = "http://168.63.129.16/"}, {}); });
    expect_error(ErrorCode::unsupported, {"link-local"},
                 [] { http_get({.url = "http://169.254.169.254/latest/meta-data/"}, {}); });
}

TEST_F(HttpGet, ChecksEveryRedirect) {
    LocalSite inside;
    inside.page("/secret", "secret");
    inside.start();
    redirect("/in", inside.url("/secret"));
    redirect("/file", "file:///etc/passwd");
    redirect("/gopher", "gopher://127.0.0.1:70/");
    redirect("/round", "/round");
    site_.start();
    expect_error(ErrorCode::unsupported, {"only public ones"}, [&] { get("/in"); });
    EXPECT_EQ(inside.requests, 0);
    expect_error(ErrorCode::unsupported, {"other than http or https"}, [&] { get("/file"); });
    expect_error(ErrorCode::unsupported, {"other than http or https"}, [&] { get("/gopher"); });
    expect_error(ErrorCode::unsupported, {"more than 5 times"}, [&] { get("/round"); });
}

TEST_F(HttpGet, RefusesWhatIsNoUrl) {
    for (const char* url :
         {"", "example.org", "file:///etc/passwd", "ftp://example.org/", "http://", "javascript:1"}) {
        expect_error(ErrorCode::invalid_argument, {"no http or https URL"},
                     [&] { http_get({.url = url}, {}); });
    }
}

TEST_F(HttpGet, RefusesOtherKindsBeforeTheirBody) {
    site_.page("/movie", std::string(1000, 'x'), "video/mp4");
    site_.page("/page", "<p>", "Text/HTML");
    site_.start();
    expect_error(ErrorCode::unsupported, {"'video/mp4'"}, [&] { get("/movie", {"text/"}); });
    EXPECT_EQ(get("/page", {"text/"}).status, 200);
}

TEST_F(HttpGet, EndsAtTheLimitOfSizeUnpacked) {
    const std::string bomb = gzip(std::string(size_t{64} << 20, 'x'));
    EXPECT_LT(bomb.size(), size_t{100'000});
    site_.server().Get("/bomb", [&](const httplib::Request&, httplib::Response& response) {
        response.set_header("Content-Encoding", "gzip");
        response.set_content(bomb, "text/html");
    });
    site_.server().Get("/endless", drip(milliseconds(0)));
    site_.start();
    HttpOptions options = site_.quick().http;
    expect_error(ErrorCode::unsupported, {"larger than 4194304 bytes"}, [&] { get("/bomb"); });
    options.max_bytes = 2'000;
    options.timeout = milliseconds(20'000);
    expect_error(ErrorCode::unsupported, {"larger than 2000 bytes"},
                 [&] { http_get({.url = site_.url("/endless")}, options); });
}

TEST_F(HttpGet, EndsAtTheLimitOfTime) {
    site_.server().Get("/slow", drip(milliseconds(20)));
    site_.start();
    HttpOptions options = site_.quick().http;
    options.timeout = milliseconds(300);
    const auto begun = steady_clock::now();
    expect_error(ErrorCode::io, {"/slow"}, [&] { http_get({.url = site_.url("/slow")}, options); });
    EXPECT_LT(steady_clock::now() - begun, milliseconds(5'000));
}

TEST_F(HttpGet, StopsWhenInterrupted) {
    site_.server().Get("/slow", drip(milliseconds(20)));
    site_.start();
    std::atomic<bool> interrupted{false};
    HttpOptions options = site_.quick().http;
    options.timeout = milliseconds(60'000);
    options.interrupted = &interrupted;
    std::thread user([&] {
        std::this_thread::sleep_for(milliseconds(100));
        interrupted = true;
    });
    const auto begun = steady_clock::now();
    expect_error(ErrorCode::interrupted, {"stopped"},
                 [&] { http_get({.url = site_.url("/slow")}, options); });
    EXPECT_LT(steady_clock::now() - begun, milliseconds(10'000));
    user.join();
}

TEST_F(HttpGet, NamesWhatCannotBeReached) {
    LocalSite gone;
    expect_error(ErrorCode::io, {gone.url("/")}, [&] { // bound, but nobody listens
        HttpOptions options = gone.quick().http;
        options.timeout = milliseconds(200);
        http_get({.url = gone.url("/")}, options);
    });
}

} // namespace spool::test
