#include <gtest/gtest.h>

#include "support/program.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::run_spool;

class InspectSessionTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto run =
            run_spool({"run", "-m", test::write_small_model(folder_).string(), "-p", "we think that the dog",
                       "-n", "60", "--window", "16", "--chunk", "8", "--pin", "2", "--ignore-eos",
                       "--repeat-limit", "0", "--session", session_, "--json"});
        ASSERT_EQ(run.exit_code, 0) << run.err;
    }
    test::TemporaryFolder folder_;
    std::string session_ = (folder_ / "thought.spool").string();
};

TEST_F(InspectSessionTest, TheTextSaysWhatItHolds) {
    const auto result = run_spool({"inspect", session_});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    for (const char* words :
         {"thought.spool: spool session", "model = llama", "bundle = none", "strategy = window",
          "window = 16", "chunk = 8", "pinned_tokens = 2", "next_position = ", "transcript", "checked: ok"}) {
        EXPECT_NE(result.out.find(words), std::string::npos) << "no '" << words << "' in:\n" << result.out;
    }
    EXPECT_EQ(result.out.find("spool.session.identity"), std::string::npos) << result.out;
}

TEST_F(InspectSessionTest, TheJsonHoldsTheSameAsNumbers) {
    const auto result = run_spool({"inspect", session_, "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json session = result.json().at("session");
    EXPECT_EQ(session.at("tokens"), session.at("pinned_tokens").get<int>() +
                                        session.at("evicted_tokens").get<int>() +
                                        session.at("window_tokens").get<int>());
    EXPECT_GT(session.at("tokens"), 60);
    EXPECT_TRUE(session.at("bundle").is_null());
}

TEST_F(InspectSessionTest, ADamagedOneIsRefusedWithExitCodeOne) {
    std::string bytes = read_text(session_);
    bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
    write_text(session_, bytes);
    const auto result = run_spool({"inspect", session_});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.out.find("refused: "), std::string::npos) << result.out;
}

} // namespace
} // namespace spool
