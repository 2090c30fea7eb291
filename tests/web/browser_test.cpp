// A real browser: pages with scripts, pages that cannot be reached, and programs that are no driver.
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "local_site.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "web/browser.h"

namespace spool::test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

TEST(Browser, GivesTheDocumentAsItsScriptsMadeIt) {
    LocalSite site;
    site.page("/page", "<p id=p>before</p><script>document.getElementById('p').textContent = 'a' + 'fter';"
                       "document.cookie = 'seen=1';</script>");
    site.server().Get(
        "/old", [](const httplib::Request&, httplib::Response& response) { response.set_redirect("/page"); });
    site.server().Get("/cookie", [](const httplib::Request& request, httplib::Response& response) {
        response.set_content("cookie: [" + request.get_header_value("Cookie") + "]", "text/html");
    });
    site.start();
    const BrowserPage page = browse(site.url("/old"), {});
    EXPECT_EQ(page.url, site.url("/page"));
    EXPECT_NE(page.html.find(">after</p>"), std::string::npos) << page.html;
    EXPECT_NE(browse(site.url("/cookie"), {}).html.find("cookie: []"), std::string::npos)
        << "a fresh profile each time";
}

TEST(Browser, SaysWhatCannotBeReached) {
    expect_error(ErrorCode::io, {"http://127.0.0.1:1/", "cannot"},
                 [] { (void)browse("http://127.0.0.1:1/", {}); });
}

TEST(Browser, EndsAtItsLimitOfTimeAndWhenInterrupted) {
    LocalSite site;
    site.server().Get("/slow", [](const httplib::Request&, httplib::Response& response) {
        response.set_chunked_content_provider("text/html", [](size_t, httplib::DataSink& sink) {
            std::this_thread::sleep_for(milliseconds(50));
            return sink.write("x", 1);
        });
    });
    site.start();
    auto begun = steady_clock::now();
    expect_error(ErrorCode::io, {"/slow", "4000 ms"},
                 [&] { (void)browse(site.url("/slow"), {.timeout = milliseconds(4'000)}); });
    EXPECT_LT(steady_clock::now() - begun, seconds(20));
    std::atomic<bool> interrupted{true};
    begun = steady_clock::now();
    expect_error(ErrorCode::interrupted, {"stopped"},
                 [&] { (void)browse(site.url("/slow"), {.interrupted = &interrupted}); });
    EXPECT_LT(steady_clock::now() - begun, seconds(20));
}

TEST(Browser, SaysThatThereIsNoDriver) {
    expect_error(ErrorCode::unsupported, {"'/nowhere/chromedriver'", "No such file"},
                 [] { (void)browse("http://127.0.0.1:1/", {.driver = "/nowhere/chromedriver"}); });
    expect_error(ErrorCode::unsupported, {"true", "does not say on which port"},
                 [] { (void)browse("http://127.0.0.1:1/", {.driver = "true"}); });
}

TEST(Browser, EndsWhatItsDriverStarted) {
    const TemporaryFolder folder;
    const auto pid_file = folder / "pid";
    const auto driver = folder / "driver";
    std::ofstream(driver) << "#!/bin/sh\nsleep 1000 &\necho $! > " << pid_file.string() << "\n";
    std::filesystem::permissions(driver, std::filesystem::perms::owner_all);
    expect_error(ErrorCode::unsupported, {"which port"},
                 [&] { (void)browse("http://127.0.0.1:1/", {.driver = driver.string()}); });
    pid_t pid = 0;
    std::ifstream(pid_file) >> pid;
    ASSERT_GT(pid, 0);
    for (int i = 0; i < 100 && ::kill(pid, 0) == 0; ++i) { // until its new parent has buried it
        std::ifstream state("/proc/" + std::to_string(pid) + "/stat");
        std::string id;
        std::string name;
        std::string letter;
        state >> id >> name >> letter;
        if (letter == "Z") {
            return;
        }
        std::this_thread::sleep_for(milliseconds(20));
    }
    EXPECT_NE(::kill(pid, 0), 0);
}

} // namespace spool::test
