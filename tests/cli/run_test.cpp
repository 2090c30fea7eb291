#include <chrono>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "support/program.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

using test::Program;
using test::run_spool;

class RunTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto path = test::default_model();
        if (!path) {
            GTEST_SKIP() << "the default model is absent: run `make model`";
        }
        model_ = path->string();
        bundle_ = test::fixture("../models/smollm2-bundle").string();
    }
    std::string model_;
    std::string bundle_;
    test::TemporaryFolder folder_;
};

TEST_F(RunTest, JsonHoldsThePromisedFieldsAndMemoryStaysWithinTheAnnouncement) {
    const auto result =
        run_spool({"run", "-m", model_, "--bundle", bundle_, "--refresh", "carry", "--window", "96",
                   "--chunk", "48", "-p", "The sea", "-n", "400", "--ignore-eos", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json json = result.json();
    for (const char* field : {"text", "tokens", "stop_reason", "tokens_per_second", "kv_bytes", "kv_cells",
                              "max_kept", "compression", "compactions", "evicted", "peak_rss_bytes"}) {
        EXPECT_TRUE(json.contains(field)) << field;
    }
    EXPECT_EQ(json["tokens"], 400);
    EXPECT_EQ(json["stop_reason"], "max_tokens");
    EXPECT_GT(json["compactions"], 4);
    EXPECT_GT(json["compression"], 1.0);
    EXPECT_LE(json["peak_rss_bytes"], json["announced_bytes"]);
    EXPECT_NE(result.err.find("memory: model"), std::string::npos)
        << "the memory is announced before the start";
}

TEST_F(RunTest, ThePromptCanComeFromStdinAndFromAFile) {
    const std::vector<std::string> common = {"run", "-m",     model_, "-n",
                                             "8",   "--temp", "0",    "--no-display-prompt"};
    const auto from_stdin = run_spool(common, "Once upon a time");
    ASSERT_EQ(from_stdin.exit_code, 0) << from_stdin.err;
    auto with_file = common;
    write_text(folder_ / "prompt.txt", "Once upon a time");
    with_file.insert(with_file.end(), {"-f", (folder_ / "prompt.txt").string()});
    EXPECT_EQ(run_spool(with_file).out, from_stdin.out);
}

TEST_F(RunTest, CtrlCKeepsThePartialTextAndTheSessionAndExitsWith130) {
    const auto session = (folder_ / "s.spool").string();
    const Program program({"run", "-m", model_, "-p", "Once upon a time", "-n", "-1", "--ignore-eos",
                           "--repeat-limit", "0", "--session", session});
    while (program.out_so_far().size() < 60) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    program.send(SIGINT);
    const auto result = program.wait();
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_GE(result.out.size(), 60U);
    EXPECT_NE(result.err.find("interrupted"), std::string::npos) << result.err;

    const auto resumed =
        run_spool({"run", "-m", model_, "-n", "5", "--ignore-eos", "--session", session, "--json"});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(resumed.json()["tokens"], 5);
}

TEST_F(RunTest, AGrammarIsFollowed) {
    const auto result = run_spool({"run", "-m", model_, "-p", "Is the sky blue?", "--grammar",
                                   R"(root ::= "yes" | "no")", "-n", "8", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string text = result.json()["text"];
    EXPECT_TRUE(text == "yes" || text == "no") << text;
}

TEST_F(RunTest, TheSameSeedGivesTheSameTextAndAnotherSeedAnother) {
    const auto text = [&](const std::string& seed) {
        return run_spool(
                   {"run", "-m", model_, "-p", "Once", "-n", "24", "--temp", "1", "--seed", seed, "--json"})
            .json()["text"];
    };
    EXPECT_EQ(text("1"), text("1"));
    EXPECT_NE(text("1"), text("2"));
}

TEST_F(RunTest, MetricsHaveALineForEveryCompactionAndASummary) {
    const auto file = folder_ / "m.jsonl";
    const auto result = run_spool({"run", "-m", model_, "--window", "64", "--chunk", "32", "-p", "The sea",
                                   "-n", "200", "--ignore-eos", "--metrics", file.string(), "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::ifstream lines(file);
    size_t compactions = 0;
    Json last;
    for (std::string line; std::getline(lines, line);) {
        last = Json::parse(line);
        compactions += last["event"] == "compaction" ? 1U : 0U;
    }
    EXPECT_EQ(compactions, result.json()["compactions"]);
    EXPECT_EQ(last["event"], "summary");
}

struct BadCall {
    std::vector<std::string> arguments;
    int exit_code;
    std::string message;
};

TEST_F(RunTest, MistakesGetAMessageThatNamesThemAndTheWayOut) {
    write_text(folder_ / "not-a-model.gguf", "hello");
    write_text(folder_ / "empty.gguf", "");
    const std::string bad = (folder_ / "not-a-model.gguf").string();
    const std::vector<BadCall> calls = {
        {{"run", "-p", "x"}, 2, "--model"},
        {{"run", "-m", "missing.gguf", "-p", "x"}, 1, "missing.gguf"},
        {{"run", "-m", bad, "-p", "x"}, 1, "not-a-model.gguf"},
        {{"run", "-m", (folder_ / "empty.gguf").string(), "-p", "x"}, 1, "empty.gguf"},
        {{"run", "-m", model_, "-p", ""}, 2, "nothing to continue"},
        {{"run", "-m", model_, "-p", "x", "--strategy", "magic"}, 2, "full, window, soft-prompt or slots"},
        {{"run", "-m", model_, "-p", "x", "--strategy", "soft-prompt"}, 2, "--bundle"},
        {{"run", "-m", model_, "-p", "x", "--window", "0"}, 2, "--window"},
        {{"run", "-m", model_, "-p", "x", "--window", "1000000"}, 2, "positions"},
        {{"run", "-m", model_, "-p", "x", "--bundle", folder_.path().string()}, 1, "bundle.json"},
        {{"run", "-m", model_, "-p", "x", "--cache-type-k", "q9"}, 2, "q8_0"},
        {{"run", "-m", model_, "-p", "x", "--top-p", "7"}, 2, "top-p"},
        {{"run", "-m", model_, "-p", "x", "--grammar", "root ::= ("}, 2, "grammar"},
        {{"run", "-m", model_, "-p", "x", "--wnidow", "5"}, 2, "--wnidow"},
        {{"fly"}, 2, "fly"},
    };
    for (const auto& call : calls) {
        const auto result = run_spool(call.arguments);
        EXPECT_EQ(result.exit_code, call.exit_code) << call.message << "\n" << result.err;
        EXPECT_NE((result.err + result.out).find(call.message), std::string::npos) << call.message << "\n"
                                                                                   << result.err;
    }
}

TEST_F(RunTest, AnErrorUnderJsonIsOneObjectOnStdout) {
    const auto result = run_spool({"run", "-m", "missing.gguf", "-p", "x", "--json"});
    EXPECT_EQ(result.exit_code, 1);
    ASSERT_TRUE(result.json().is_object()) << result.out;
    EXPECT_EQ(result.json()["error"]["code"], "not_found");
}

TEST_F(RunTest, AFullDiskIsReportedAndTheTextIsNotLost) {
    const auto result = run_spool({"run", "-m", model_, "-p", "Once", "-n", "4", "--metrics", "/dev/full"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("/dev/full"), std::string::npos) << result.err;
    EXPECT_NE(result.out.find("Once"), std::string::npos);
}

TEST(CompletionTest, EveryShellGetsAScriptThatNamesTheSubcommands) {
    for (const char* shell : {"bash", "zsh", "fish"}) {
        const auto result = run_spool({"completion", shell});
        EXPECT_EQ(result.exit_code, 0);
        for (const char* word : {"run", "eval", "bench", "convert", "inspect", "window"}) {
            EXPECT_NE(result.out.find(word), std::string::npos) << shell << " lacks " << word;
        }
    }
}

TEST(CompletionTest, TheBashScriptCompletesSubcommandsAndOptions) {
    const auto script = run_spool({"completion", "bash"}).out;
    const test::TemporaryFolder folder;
    write_text(folder / "complete.sh", script + R"(
COMP_WORDS=(spool ru); COMP_CWORD=1; _spool; echo "${COMPREPLY[0]}"
COMP_WORDS=(spool run --wind); COMP_CWORD=2; _spool; echo "${COMPREPLY[0]}"
)");
    const auto result = Program({(folder / "complete.sh").string()}, "", "/bin/bash").wait();
    EXPECT_EQ(result.out, "run\n--window\n");
}

} // namespace
} // namespace spool
