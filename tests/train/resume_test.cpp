// A run that is stopped, or killed at any moment, ends with the weights of one that was not.
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "train/tiny_run.h"

namespace spool::train {
namespace {

class ResumeTest : public TinyRun {};

TEST_F(ResumeTest, StoppedAndResumedEqualsUninterrupted) {
    ASSERT_EQ(test::Program(arguments("whole", 20), "", SPOOL_TRAIN_BINARY).wait().exit_code, 0);
    // The schedule looks at --steps, so the run is stopped, not shortened.
    const test::Program first(arguments("parts", 20), "", SPOOL_TRAIN_BINARY);
    while (!std::filesystem::exists(checkpoint_path(folder_ / "parts", 5))) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    first.send(SIGINT);
    const auto stopped = first.wait();
    EXPECT_TRUE(stopped.exit_code == 130 || stopped.exit_code == 0) << stopped.err;
    ASSERT_EQ(test::Program(arguments("parts", 20), "", SPOOL_TRAIN_BINARY).wait().exit_code, 0);
    expect_equal(weights("whole", 20), weights("parts", 20));
}

TEST_F(ResumeTest, KilledTwentyTimesEqualsUninterrupted) {
    ASSERT_EQ(test::Program(arguments("whole", 60), "", SPOOL_TRAIN_BINARY).wait().exit_code, 0);
    Random random(9);
    for (int kill = 0; kill < 20; ++kill) {
        const test::Program run(arguments("killed", 60), "", SPOOL_TRAIN_BINARY);
        std::this_thread::sleep_for(std::chrono::milliseconds(200 + random.below(500)));
        run.send(SIGKILL);
        run.wait();
    }
    const auto last = test::Program(arguments("killed", 60), "", SPOOL_TRAIN_BINARY).wait();
    ASSERT_EQ(last.exit_code, 0) << last.err;
    expect_equal(weights("whole", 60), weights("killed", 60));
    // The log has every step once.
    std::ifstream log(folder_ / "killed" / "log.jsonl");
    uint64_t next = 1;
    for (std::string line; std::getline(log, line);) {
        const Json entry = Json::parse(line);
        if (entry.contains("loss")) {
            EXPECT_EQ(entry["step"].get<uint64_t>(), next++);
        }
    }
    EXPECT_EQ(next, 61U);
}

TEST_F(ResumeTest, WrongSettingsAreNamed) {
    auto wrong = arguments("wrong", 5);
    wrong.insert(wrong.end(), {"--chunk", "4"});
    const auto refused = test::Program(wrong, "", SPOOL_TRAIN_BINARY).wait();
    EXPECT_NE(refused.exit_code, 0);
    const auto missing =
        test::Program({"run", "--model", "nowhere.gguf", "--data", "x", "--out", "y"}, "", SPOOL_TRAIN_BINARY)
            .wait();
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_NE(missing.err.find("nowhere.gguf"), std::string::npos);
    auto elsewhere = arguments("elsewhere", 5);
    elsewhere.insert(elsewhere.end(), {"--device", "cuda:77"});
    const auto no_device = test::Program(elsewhere, "", SPOOL_TRAIN_BINARY).wait();
    EXPECT_EQ(no_device.exit_code, 2);
    EXPECT_NE(no_device.err.find("cuda:77"), std::string::npos) << no_device.err;
}

/// Every kind of weighting and drawing in one run: it ends, and differs from the plain one.
TEST_F(ResumeTest, WeightsByHelpAndDrawnBuffers) {
    auto helped = arguments("helped", 3);
    helped.insert(helped.end(), {"--help-weight", "2", "--kl", "0.5", "--max-distant-min", "8",
                                 "--max-distant", "24", "--full-share", "0.3", "--window-share", "0.2"});
    const auto result = test::Program(helped, "", SPOOL_TRAIN_BINARY).wait();
    ASSERT_EQ(result.exit_code, 0) << result.err;
    ASSERT_EQ(test::Program(arguments("plain", 3), "", SPOOL_TRAIN_BINARY).wait().exit_code, 0);
    EXPECT_FALSE(at::equal(weights("helped", 3).at("pooler/query"), weights("plain", 3).at("pooler/query")));
}

} // namespace
} // namespace spool::train
