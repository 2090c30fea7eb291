#include <map>
#include <regex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "corpus/shards.h"
#include "llm/chat_template.h"
#include "llm/tokenizer.h"
#include "support/program.h"

namespace spool {
namespace {

using test::Program;
using test::run_spool;

class PrepareCommandTest : public test::WithDefaultModel {
  protected:
    void SetUp() override {
        WithDefaultModel::SetUp();
        if (model_) {
            path_ = model_->path().string();
        }
    }
    std::string out() const { return (folder_ / "shards").string(); }

    std::string path_;
    test::TemporaryFolder folder_;
};

std::string record(const std::string& prompt, const std::string& think, const std::string& answer) {
    return Json({{"prompt", prompt}, {"think", think}, {"answer", answer}}).dump() + "\n";
}

TEST_F(PrepareCommandTest, IdsAreTheEnginesOwn) {
    const std::string think = "Well, 12 * 3 = 36.\n\nSo  \"thirty-six\" (naïve, 東京) it is <|im_end|>";
    write_text(folder_ / "in.jsonl",
               record("What is 12 * 3?", think, "It is **36**.") + "oops\n" + record("Hello?", "", "Hi!"));
    const auto result = run_spool({"prepare", "-m", path_, (folder_ / "in.jsonl").string(), out(),
                                   "--min-tokens", "1", "--val-share", "0", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.json()["splits"]["train"]["traces"], 2);
    EXPECT_EQ(result.json()["rejected"], (Json{{"not_json", 1}}));

    const TokenShards shards(out(), "train");
    EXPECT_EQ(shards.vocab_sha256(), model_->facts().vocab_sha256);
    EXPECT_EQ(shards.vocab_size(), model_->facts().vocab_size);
    const Tokenizer tokenizer(*model_);
    const ChatTemplate chat(*model_);
    const auto expected = [&](const std::string& prompt, const std::string& reply) {
        auto tokens = tokenizer.encode(chat.render({{"user", prompt}}, true).prompt, false, true);
        const size_t pinned = tokens.size();
        // Plain text: what spells a control token must not become one.
        const auto rest = tokenizer.encode(reply, false, false);
        tokens.insert(tokens.end(), rest.begin(), rest.end());
        tokens.push_back(tokenizer.eos());
        return std::pair(tokens, pinned);
    };
    const auto check = [&](const TraceView& trace, const std::pair<std::vector<Token>, size_t>& wanted) {
        EXPECT_EQ(std::vector<Token>(trace.tokens.begin(), trace.tokens.end()), wanted.first);
        EXPECT_EQ(static_cast<size_t>(trace.prompt), wanted.second);
    };
    check(shards.trace(0), expected("What is 12 * 3?", "<think>\n" + think + "\n</think>\n\nIt is **36**."));
    check(shards.trace(1), expected("Hello?", "Hi!"));
}

TEST_F(PrepareCommandTest, RealTracesArePreparedAndSplitByPrompt) {
    const auto data = test::shared_data("cot/val.jsonl.gz");
    if (!data) {
        GTEST_SKIP() << "cot/val.jsonl.gz is absent";
    }
    const auto result = run_spool({"prepare", "-m", path_, data->string(), out(), "--min-tokens", "500",
                                   "--val-share", "0.2", "--shard-tokens", "50000"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("too_short"), std::string::npos) << result.out;
    const Tokenizer tokenizer(*model_);
    std::map<std::string, std::set<std::string>> prompts;
    for (const char* split : {"train", "val"}) {
        const TokenShards shards(out(), split);
        EXPECT_GT(shards.size(), 10U) << split;
        for (size_t i = 0; i < shards.size(); ++i) {
            const TraceView trace = shards.trace(i);
            EXPECT_GE(trace.tokens.size(), 500U);
            EXPECT_TRUE(tokenizer.is_end(trace.tokens.back()));
            const auto prompt = static_cast<size_t>(trace.prompt);
            EXPECT_TRUE(
                tokenizer.decode(trace.tokens.first(prompt), true).ends_with("<|im_start|>assistant\n"));
            EXPECT_TRUE(tokenizer.decode(trace.tokens.subspan(prompt), true).starts_with("<think>\n"));
            prompts[split].insert(tokenizer.decode(trace.tokens.first(prompt), true));
        }
    }
    for (const std::string& prompt : prompts["val"]) {
        EXPECT_FALSE(prompts["train"].contains(prompt));
    }
}

TEST_F(PrepareCommandTest, SyntheticTracesHaveTheDistanceAskedForInTheModelsTokens) {
    const auto filler = test::shared_data("cot/val.jsonl.gz");
    if (!filler) {
        GTEST_SKIP() << "cot/val.jsonl.gz is absent";
    }
    const Tokenizer tokenizer(*model_);
    for (const char* task : {"recall", "ledger", "rally"}) {
        const auto result = run_spool({"prepare", "-m", path_, out(), "--synthetic", task, "--filler",
                                       filler->string(), "--samples", "8", "--facts", "3", "--distance",
                                       "300-900", "--seed", "7", "--val-share", "0", "--overwrite"});
        ASSERT_EQ(result.exit_code, 0) << result.err;
        const TokenShards shards(out(), "train");
        ASSERT_EQ(shards.size(), 8U);
        for (size_t i = 0; i < shards.size(); ++i) {
            const TraceView trace = shards.trace(i);
            ASSERT_EQ(trace.answers.size(), 3U);
            const auto reply = trace.tokens.subspan(static_cast<size_t>(trace.prompt));
            EXPECT_EQ(tokenizer.encode(tokenizer.decode(reply, true), false, true),
                      std::vector<Token>(reply.begin(), reply.end()))
                << "the ids of the text as a whole";
            for (const Answer& answer : trace.answers) {
                EXPECT_GE(answer.distance, 300);
                EXPECT_LE(answer.distance, 900);
                const auto offset = static_cast<size_t>(answer.offset);
                const std::string number =
                    tokenizer.decode(trace.tokens.subspan(offset, static_cast<size_t>(answer.length)));
                EXPECT_TRUE(std::regex_match(number, std::regex(" ?[0-9]+"))) << number;
                // The statement ends where the distance says, and what is asked for is in it.
                const std::string before =
                    tokenizer.decode(trace.tokens.first(offset - static_cast<size_t>(answer.distance)));
                ASSERT_TRUE(before.ends_with(".\n")) << before.substr(before.size() - 60);
                const std::string line = before.substr(before.rfind('\n', before.size() - 2) + 1);
                EXPECT_TRUE(std::regex_search(line, std::regex("code of the|pays in|takes out|result is")))
                    << line;
                EXPECT_TRUE(std::string_view(task) != "recall" || line.find(number) != std::string::npos)
                    << line;
            }
        }
    }
}

TEST_F(PrepareCommandTest, CtrlCLeavesNothingBehindAndExitsWith130) {
    std::string text;
    for (int i = 0; i < 4000; ++i) {
        text += record("Question " + std::to_string(i), std::string(20000, 'x') + " y z.", "Done.");
    }
    write_text(folder_ / "in.jsonl", text);
    const Program program(
        {"prepare", "-m", path_, (folder_ / "in.jsonl").string(), out(), "--shard-tokens", "20000"});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto started = [&] {
        return std::ranges::any_of(std::filesystem::directory_iterator(folder_.path()),
                                   [](const auto& entry) {
                                       return entry.path().filename().string().starts_with("shards.partial-");
                                   });
    };
    while (!started() && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    program.send(SIGINT);
    const auto result = program.wait();
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_NE(result.err.find("stopped"), std::string::npos) << result.err;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
        EXPECT_EQ(entry.path().filename(), "in.jsonl");
    }
}

TEST_F(PrepareCommandTest, MistakesGetAMessageThatNamesThemAndTheWayOut) {
    write_text(folder_ / "in.jsonl", record("Hello?", "", "Hi!"));
    const std::string in = (folder_ / "in.jsonl").string();
    struct Call {
        std::vector<std::string> arguments;
        int exit_code;
        std::string message;
    };
    const std::vector<Call> calls = {
        {{in, out()}, 2, "--model"},
        {{"-m", path_, out()}, 2, "SOURCE"},
        {{"-m", path_, (folder_ / "missing.jsonl").string(), out()}, 1, "missing.jsonl"},
        {{"-m", path_, in, out()}, 1, "too_short"},
        {{"-m", path_, in, folder_.path().string()}, 2, "other files"},
        {{"-m", path_, in, out(), "--val-share", "2"}, 2, "--val-share"},
        {{"-m", path_, in, out(), "--synthetic", "recall"}, 2, "--filler"},
        {{"-m", path_, out(), "--synthetic", "chess", "--filler", in}, 2, "recall, ledger or rally"},
        {{"-m", path_, out(), "--synthetic", "rally", "--filler", in, "--distance", "far"}, 2, "500-4000"},
        {{"-m", path_, out(), "--synthetic", "rally", "--filler", in, "--distance", "9-"}, 2, "500-4000"},
        {{"-m", path_, out(), "--synthetic", "rally", "--filler", in}, 1, "\"think\""},
    };
    for (const Call& call : calls) {
        std::vector<std::string> arguments = {"prepare"};
        arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
        const auto result = run_spool(arguments);
        EXPECT_EQ(result.exit_code, call.exit_code) << call.message << "\n" << result.err;
        EXPECT_NE((result.err + result.out).find(call.message), std::string::npos) << call.message << "\n"
                                                                                   << result.err;
    }
    EXPECT_FALSE(std::filesystem::exists(out()));
}

} // namespace
} // namespace spool
