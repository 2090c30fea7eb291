// `spool serve` as a program: starting, ending, being killed.
#include <chrono>
#include <cpp-httplib/httplib.h>
#include <thread>

#include <gtest/gtest.h>

#include "support/program.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::Program;

class ServeTest : public ::testing::Test {
  protected:
    std::vector<std::string> arguments() const {
        return {"serve",  "-m",           model_,   "--port",     "0",
                "--json", "--ignore-eos", "--temp", "1",          "--window",
                "64",     "-t",           "1",      "--sessions", (folder_ / "sessions").string()};
    }
    static int port_of(const Program& program) {
        for (int i = 0; i < 200; ++i) {
            const Json line = Json::parse(program.out_so_far(), nullptr, false);
            if (line.is_object()) {
                return line["port"].get<int>();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        ADD_FAILURE() << "the server did not start";
        return 0;
    }
    /// One turn of session "mine"; returns the usage.
    static Json say(int port) {
        httplib::Client client("127.0.0.1", port);
        const Json body = {{"messages", {{{"role", "user"}, {"content", "Hello"}}}},
                           {"max_tokens", 8},
                           {"session_id", "mine"}};
        const auto response = client.Post("/v1/chat/completions", body.dump(), "application/json");
        if (!response || response->status != 200) {
            ADD_FAILURE() << (response ? response->body : "no answer");
            return Json::object();
        }
        return Json::parse(response->body)["usage"];
    }

    test::TemporaryFolder folder_;
    std::string model_ = test::write_small_model(folder_).string();
};

TEST_F(ServeTest, CtrlCEndsItAndConversationsGoOnAfterwards) {
    size_t known = 0;
    for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
        const Program server(arguments());
        const Json usage = say(port_of(server));
        EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], known) << "before signal " << signal;
        known = usage["total_tokens"].get<size_t>();
        server.send(signal);
        const auto ended = server.wait();
        EXPECT_EQ(ended.exit_code, signal == SIGKILL ? 128 + SIGKILL : 0) << ended.err;
    }
    const Program last(arguments());
    EXPECT_EQ(say(port_of(last))["prompt_tokens_details"]["cached_tokens"], known) << "even after kill -9";
    last.send(SIGINT);
    last.wait();
}

TEST_F(ServeTest, APortInUseAndWrongOptionsAreNamed) {
    const Program first(arguments());
    const int port = port_of(first);
    const auto second = test::run_spool({"serve", "-m", model_, "--port", std::to_string(port)});
    EXPECT_EQ(second.exit_code, 1);
    EXPECT_NE(second.err.find("--port"), std::string::npos) << second.err;
    first.send(SIGINT);
    EXPECT_EQ(first.wait().exit_code, 0);
    EXPECT_EQ(test::run_spool({"serve", "-m", model_, "--parallel", "0"}).exit_code, 2);
}

} // namespace
} // namespace spool
