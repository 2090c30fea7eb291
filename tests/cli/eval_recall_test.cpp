#include <gtest/gtest.h>

#include "support/program.h"

namespace spool {
namespace {

using test::run_spool;

class EvalRecallTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto path = test::default_model();
        if (!path) {
            GTEST_SKIP() << "the default model is absent: run `make model`";
        }
        model_ = path->string();
    }

    test::ProgramResult recall(const std::vector<std::string>& more,
                               const std::string& distance = "200-220") const {
        std::vector<std::string> arguments = {"eval", "recall",     "-m",    model_,   "--facts",
                                              "2",    "--samples",  "4",     "--json", "--window",
                                              "64",   "--distance", distance};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_spool(arguments);
    }

    std::string model_;
};

TEST_F(EvalRecallTest, AModelThatSeesTheFactsAnswersAndOneThatDoesNotGuesses) {
    const auto full = recall({"--strategy", "full"});
    ASSERT_EQ(full.exit_code, 0) << full.err;
    const auto window = recall({"--strategy", "window"});
    ASSERT_EQ(window.exit_code, 0) << window.err;
    const Json seen = full.json();
    EXPECT_EQ(seen["samples"], 4);
    EXPECT_EQ(seen["answers"], 8);
    EXPECT_EQ(seen["strategy"], "full");
    EXPECT_GT(seen["digits"]["mean"], 0.8);
    EXPECT_LE(seen["digits"]["lo"], seen["digits"]["mean"]);
    EXPECT_GE(seen["digits"]["hi"], seen["digits"]["mean"]);
    EXPECT_LE(seen["exact"]["mean"], seen["digits"]["mean"]);
    EXPECT_LT(window.json()["digits"]["mean"], 0.4);
    EXPECT_EQ(recall({"--strategy", "window"}).out, window.out) << "the same seed, the same cases";
    EXPECT_NE(recall({"--strategy", "window", "--seed", "2"}).out, window.out);
}

TEST_F(EvalRecallTest, SeveralWindowsAreOneGridWithAReport) {
    const test::TemporaryFolder folder;
    const auto page = (folder / "grid.html").string();
    const auto grid = recall({"--strategy", "window", "--windows", "64", "400", "--report", page});
    ASSERT_EQ(grid.exit_code, 0) << grid.err;
    const Json json = grid.json();
    ASSERT_EQ(json["grid"].size(), 2U);
    EXPECT_EQ(json["grid"][0]["window"], 64);
    EXPECT_EQ(json["grid"][1]["window"], 400);
    EXPECT_EQ(json["digits"], recall({"--strategy", "window"}).json()["digits"]) << "its first point";
    EXPECT_GT(json["grid"][1]["digits"]["mean"], 0.8) << "the facts are still in this window";
    const std::string html = read_text(page);
    EXPECT_NE(html.find("Answers given in full, by window"), std::string::npos);
    EXPECT_NE(html.find("rw 400"), std::string::npos);
}

TEST_F(EvalRecallTest, MistakesAreNamed) {
    const auto far = recall({}, "far");
    EXPECT_EQ(far.exit_code, 2);
    EXPECT_NE(far.err.find("500-4000"), std::string::npos) << far.err;
    const auto task = recall({"--task", "chess"});
    EXPECT_EQ(task.exit_code, 2);
    EXPECT_NE(task.err.find("rally"), std::string::npos) << task.err;
    const auto no_model = run_spool({"eval", "recall"});
    EXPECT_EQ(no_model.exit_code, 2);
    EXPECT_NE(no_model.err.find("--model"), std::string::npos) << no_model.err;
    const auto slots = recall({"--strategy", "slots"});
    EXPECT_NE(slots.exit_code, 0);
    EXPECT_NE(slots.err.find("bundle"), std::string::npos) << slots.err;
}

} // namespace
} // namespace spool
