#include <gtest/gtest.h>

#include "support/program.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::run_spool;

class EvalEndlessTest : public ::testing::Test {
  protected:
    test::ProgramResult endless(const std::vector<std::string>& more) const {
        std::vector<std::string> arguments = {"eval",   "endless", "-m",     model_, "--window",
                                              "64",     "--chunk", "32",     "-n",   "16",
                                              "--text", "40",      "--json", "-t",   "1"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_spool(arguments);
    }

    test::TemporaryFolder folder_;
    std::string model_ = test::write_small_model(folder_).string();
};

TEST_F(EvalEndlessTest, ManyTurnsAreSummedUpAndDrawn) {
    const auto page = (folder_ / "endless.html").string();
    const auto result = endless({"--turns", "40", "--report", page});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json json = result.json();
    EXPECT_EQ(json["turns"], 40);
    EXPECT_GT(json["tokens"].get<int>(), 40 * 16) << "many times what the cells hold";
    EXPECT_LE(json["cells"].get<int>(), 256);
    EXPECT_GT(json["flat"].get<double>(), 0);
    EXPECT_GT(json["speed_beside_peer"].get<double>(), 0);
    EXPECT_LT(json["rss_growth_bytes"].get<int64_t>(), 8 << 20);
    EXPECT_NE(read_text(page).find("Seconds of a turn"), std::string::npos);
}

TEST_F(EvalEndlessTest, TooFewTurnsAreRefused) {
    const auto result = endless({"--turns", "3"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find('8'), std::string::npos) << result.err;
}

} // namespace
} // namespace spool
