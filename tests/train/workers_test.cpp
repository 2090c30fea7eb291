// Several processes train as one would.
#include <algorithm>
#include <arpa/inet.h>
#include <fstream>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "train/tiny_run.h"

namespace spool::train {
namespace {

/// A port that nobody listened at a moment ago.
int free_port() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0) {
        return 0;
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool bound = ::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    ::close(listener);
    return bound ? ntohs(address.sin_port) : 0;
}

class WorkersTest : public TinyRun {
  protected:
    /// A process of `size`, started as torchrun starts it.
    test::Program worker(int rank, int size, int port, const std::vector<std::string>& arguments) const {
        std::vector<std::string> words = {
            "RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size),
            "MASTER_ADDR=127.0.0.1",        "MASTER_PORT=" + std::to_string(port),
            "GLOO_SOCKET_IFNAME=lo",        SPOOL_TRAIN_BINARY};
        words.insert(words.end(), arguments.begin(), arguments.end());
        return test::Program(words, "", "/usr/bin/env");
    }

    std::vector<double> losses(const std::string& out) const {
        std::ifstream log(folder_ / out / "log.jsonl");
        std::vector<double> values;
        for (std::string line; std::getline(log, line);) {
            const Json entry = Json::parse(line);
            if (entry.contains("loss")) {
                values.push_back(entry["loss"].get<double>());
            }
        }
        return values;
    }
};

TEST_F(WorkersTest, TwoProcessesHaveTheLossCurveOfOne) {
    const auto alone = test::Program(arguments("alone", 12), "", SPOOL_TRAIN_BINARY).wait();
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    const int port = free_port();
    const test::Program first = worker(0, 2, port, arguments("both", 12));
    const test::Program second = worker(1, 2, port, arguments("both", 12));
    const auto first_result = first.wait();
    const auto second_result = second.wait();
    ASSERT_EQ(first_result.exit_code, 0) << first_result.err;
    ASSERT_EQ(second_result.exit_code, 0) << second_result.err;

    const auto one = losses("alone");
    const auto two = losses("both");
    ASSERT_EQ(one.size(), 12U);
    ASSERT_EQ(two.size(), 12U);
    for (size_t i = 0; i < one.size(); ++i) {
        EXPECT_NEAR(two[i], one[i], 2e-5 * one[i]) << "step " << i + 1;
    }
    EXPECT_NE(one.front(), one.back());
}

TEST_F(WorkersTest, MoreProcessesThanTracesInAStep) {
    auto small = arguments("small", 3);
    *(std::ranges::find(small, "--batch-tokens") + 1) = "1";
    const int port = free_port();
    const test::Program first = worker(0, 2, port, small);
    const test::Program second = worker(1, 2, port, small);
    const auto result = first.wait();
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(second.wait().exit_code, 0);
    EXPECT_EQ(losses("small").size(), 3U);
}

TEST_F(WorkersTest, InterruptingOneStopsAll) {
    const int port = free_port();
    const test::Program first = worker(0, 2, port, arguments("long", 100000));
    const test::Program second = worker(1, 2, port, arguments("long", 100000));
    while (losses("long").size() < 2) {
        ::usleep(20000);
    }
    second.send(SIGINT);
    EXPECT_EQ(second.wait().exit_code, 130);
    EXPECT_EQ(first.wait().exit_code, 130);
    EXPECT_TRUE(latest_checkpoint(folder_ / "long"));
}

TEST_F(WorkersTest, WrongVariablesAreNamed) {
    const auto refused = worker(5, 2, 29500, arguments("x", 1)).wait();
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("RANK"), std::string::npos) << refused.err;
}

} // namespace
} // namespace spool::train
