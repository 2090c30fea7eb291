#include <csignal>
#include <cstdlib>
#include <sstream>

#include <gtest/gtest.h>

#include "support/program.h"
#include "support/small_model.h"
#include "support/terminal.h"

namespace spool {
namespace {

using test::run_spool;

class ChatTest : public ::testing::Test {
  protected:
    ChatTest() { ::setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1); }

    std::vector<std::string> chat(const std::vector<std::string>& more = {}) const {
        std::vector<std::string> arguments = {"chat", "-m",       model_, "-n",      "6",  "-t",
                                              "1",    "--window", "64",   "--chunk", "16", "--ignore-eos"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return arguments;
    }
    /// Types at the next prompt.
    static void enter(test::Terminal& terminal, std::string_view keys) {
        EXPECT_TRUE(terminal.shows("\033[?2004h")) << terminal.screen();
        terminal.type(keys);
    }
    static std::vector<Json> objects(const std::string& text) {
        std::vector<Json> lines;
        std::istringstream stream(text);
        for (std::string line; std::getline(stream, line);) {
            lines.push_back(Json::parse(line));
        }
        return lines;
    }

    test::TemporaryFolder folder_;
    std::string model_ = test::write_small_model(folder_).string();
};

TEST_F(ChatTest, EachLineOfAPipeIsATurnAndEachReplyAnObject) {
    const auto result = run_spool(chat({"--json"}), "Hello\n\nAnd then?\n/help is no command here\n");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto turns = objects(result.out);
    ASSERT_EQ(turns.size(), 3U);
    EXPECT_EQ(turns[1]["user"], "And then?");
    EXPECT_EQ(turns[1]["tokens"], 6);
    EXPECT_EQ(turns[1]["stop_reason"], "max_tokens");
    EXPECT_EQ(turns[1]["fault"], "none");
    EXPECT_GT(turns[1]["memory"]["tokens"], turns[0]["memory"]["tokens"]);
    EXPECT_EQ(turns[1]["memory"]["pinned"], 1);
    EXPECT_EQ(run_spool(chat({"--json"}), "Hello\n").json()["answer"], turns[0]["answer"]) << "one seed";
}

TEST_F(ChatTest, ASavedConversationGoesOnWhereItStopped) {
    const std::string file = (folder_ / "chat.spool").string();
    const auto first = run_spool(chat({"--json", "--session", file}), "One\nTwo\n");
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const auto second = run_spool(chat({"--json", "--session", file}), "Three\n");
    ASSERT_EQ(second.exit_code, 0) << second.err;
    EXPECT_NE(second.err.find("2 turns"), std::string::npos) << second.err;
    EXPECT_GT(second.json()["memory"]["tokens"], objects(first.out).back()["memory"]["tokens"]);
}

TEST_F(ChatTest, AReplyThatCannotStandIsDrawnAgainAndThenReported) {
    const auto result = run_spool(chat({"--json", "--reasoning", "think", "--retries", "2"}), "Hello\n");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.json()["fault"], "unfinished_thinking");
    EXPECT_EQ(result.json()["attempts"], 3);
    EXPECT_EQ(result.json()["memory"]["tokens"], 0) << "nothing of it is kept";
    const auto plain = run_spool(chat({"--reasoning", "think", "--retries", "0"}), "Hello\n");
    EXPECT_NE(plain.err.find("the thinking did not come to an end"), std::string::npos) << plain.err;
}

TEST_F(ChatTest, MathAsksForABox) {
    const std::string file = (folder_ / "math.spool").string();
    ASSERT_EQ(run_spool(chat({"--math", "--session", file}), "2 + 2?\n").exit_code, 0);
    EXPECT_NE(read_text(file).find("\\\\boxed{}"), std::string::npos);
}

TEST_F(ChatTest, MistakesAreNamed) {
    EXPECT_NE(run_spool(chat({"--reasoning", "loud"})).err.find("auto, think or none"), std::string::npos);
    EXPECT_NE(run_spool(chat({"--show-thinking", "loud"})).err.find("full, fold or off"), std::string::npos);
    EXPECT_EQ(run_spool(chat({"--reasoning", "loud"})).exit_code, 2);
}

TEST_F(ChatTest, OnATerminalPasteCommandsAndCtrlCDoWhatTheySay) {
    test::Terminal terminal(chat(), 60, 20);
    enter(terminal, "\033[200~line one\nline two\033[201~\r");
    ASSERT_TRUE(terminal.shows("line two")) << terminal.screen();
    ASSERT_TRUE(terminal.shows("stopped at 6 tokens")) << terminal.screen();
    enter(terminal, "/stats\r");
    EXPECT_TRUE(terminal.shows("1 turns, 6 tokens")) << "a paste is one turn\n" << terminal.screen();
    enter(terminal, "/why\r");
    EXPECT_TRUE(terminal.shows("pinned            1")) << terminal.screen();
    enter(terminal, "half a line\003");
    EXPECT_TRUE(terminal.shows("Ctrl-D or /quit ends")) << terminal.screen();
    enter(terminal, "/window none\r");
    EXPECT_TRUE(terminal.shows("it is 64 now")) << "Ctrl-C dropped the half line\n" << terminal.screen();
    enter(terminal, "/window 80\r");
    EXPECT_TRUE(terminal.shows("the window is 80 tokens now")) << terminal.screen();
    enter(terminal, "/undo\r");
    EXPECT_TRUE(terminal.shows("only the last 4 turns")) << "/window reads again\n" << terminal.screen();
    enter(terminal, "Hello\r");
    EXPECT_TRUE(terminal.shows("stopped at 6 tokens")) << terminal.screen();
    enter(terminal, "/undo\r");
    EXPECT_TRUE(terminal.shows("taken back")) << terminal.screen();
    enter(terminal, "/save " + (folder_ / "x.spool").string() + "\r");
    EXPECT_TRUE(terminal.shows("wrote")) << terminal.screen();
    enter(terminal, "/reset\r");
    EXPECT_TRUE(terminal.shows("forgotten")) << terminal.screen();
    enter(terminal, "/load " + (folder_ / "x.spool").string() + "\r");
    EXPECT_TRUE(terminal.shows("1 turns")) << terminal.screen();
    enter(terminal, "/nonsense\r");
    EXPECT_TRUE(terminal.shows("there is no command /nonsense")) << terminal.screen();
    enter(terminal, "\004");
    EXPECT_EQ(terminal.exit_code(), 0) << terminal.screen();
}

TEST_F(ChatTest, TerminationSavesAndEnds) {
    const std::string file = (folder_ / "ended.spool").string();
    test::Terminal terminal(chat({"--session", file}), 80, 24);
    enter(terminal, "Hello\r");
    ASSERT_TRUE(terminal.shows("stopped at 6 tokens")) << terminal.screen();
    terminal.signal(SIGTERM);
    EXPECT_EQ(terminal.exit_code(), 130) << terminal.screen();
    EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(ChatTest, CtrlCStopsAReplyAndKeepsTheChat) {
    auto arguments = chat();
    *(std::ranges::find(arguments, "-n") + 1) = "100000";
    test::Terminal terminal(arguments, 80, 24);
    enter(terminal, "Hello\r");
    ASSERT_TRUE(terminal.shows("Hello\r\n")) << terminal.screen();
    ::usleep(300000);
    terminal.type("\003");
    EXPECT_TRUE(terminal.shows("(stopped)")) << terminal.screen();
    enter(terminal, "/stats\r");
    EXPECT_TRUE(terminal.shows("1 turns")) << terminal.screen();
    enter(terminal, "/quit\r");
    EXPECT_EQ(terminal.exit_code(), 0);
}

} // namespace
} // namespace spool
