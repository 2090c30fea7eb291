#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "support/program.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::run_spool;

class InitTest : public ::testing::Test {
  protected:
    std::vector<std::string> arguments(const std::vector<std::string>& more) const {
        std::vector<std::string> all = {"init", tokenizer_, (folder_ / "fresh.gguf").string()};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }

    test::TemporaryFolder folder_;
    std::string tokenizer_ = test::write_small_model(folder_).string();
};

TEST_F(InitTest, AModelOfTheShapeAskedForRuns) {
    const auto made = run_spool(arguments({"--layers", "3", "--width", "48", "--heads", "4", "--kv-heads",
                                           "2", "--ffn", "96", "--context", "1024", "--json"}));
    ASSERT_EQ(made.exit_code, 0) << made.err;
    // 304 tokens, q and o, k and v, three of the feed-forward, two norms a block and one at the end.
    EXPECT_EQ(made.json()["weights"], 304 * 48 + 3 * (2 * 48 * 48 + 2 * 24 * 48 + 3 * 96 * 48 + 2 * 48) + 48);
    EXPECT_EQ(GgufFile(folder_ / "fresh.gguf").u32("llama.block_count"), 3U);
    const auto ran = run_spool(
        {"run", "-m", (folder_ / "fresh.gguf").string(), "-p", "abc", "-n", "5", "--ignore-eos", "--json"});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.json()["tokens"], 5);
}

TEST_F(InitTest, NothingIsOverwrittenAndWrongShapesAreNamed) {
    const auto refused = run_spool(arguments({"--width", "50", "--heads", "4"}));
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_NE(refused.err.find("heads"), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "fresh.gguf"));
    ASSERT_EQ(run_spool(arguments({})).exit_code, 0);
    const auto again = run_spool(arguments({}));
    EXPECT_EQ(again.exit_code, 2);
    EXPECT_NE(again.err.find("exists"), std::string::npos) << again.err;
}

} // namespace
} // namespace spool
