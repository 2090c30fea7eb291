// The batteries around scripted models: one that knows everything, and ones that fail each in its way.
#include <regex>

#include <gtest/gtest.h>

#include "core/file.h"
#include "eval/battery.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/scripted.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::Script;

class BatteryTest : public test::WithSmallModel {
  protected:
    BatteryTest() {
        options_.pool.memory.strategy = StrategyKind::window;
        options_.pool.memory.window = 64;
        options_.pool.memory.chunk = 16;
        options_.pool.threads = 1;
        options_.rules.max_tokens = 120;
        options_.rules.retries = 1;
    }

    /// What the model writes for answer number `turn` of `problem`.
    using Writer = std::function<std::string(const Problem& problem, size_t turn)>;

    std::vector<Attempt> run(const std::vector<Problem>& problems, const Writer& writer, bool ends = true) {
        return run_battery(
            *model_, nullptr, chat_, reasoning_, problems,
            [&](const Problem& problem, uint32_t, const Tokenizer& tokenizer) {
                ++made_;
                auto script = std::make_unique<Script>(tokenizer);
                for (size_t turn = 0; turn < problem.answers.size(); ++turn) {
                    script->add(writer(problem, turn), ends);
                }
                return script;
            },
            identity_, options_);
    }
    static std::string right(const Problem& problem, size_t turn) {
        return "Let me see. It is \\boxed{" + problem.answers[turn] + "}.";
    }

    ChatTemplate chat_{*model_, "{% for m in messages %}[{{ m.content }}]{% endfor %}"};
    ReasoningFormat reasoning_;
    BatteryOptions options_;
    Json identity_ = {{"eval", "test"}};
    int made_ = 0;
};

TEST_F(BatteryTest, AnOracleScoresSixOfSix) {
    options_.samples = 2;
    const auto attempts = run(battery_problems(), right);
    ASSERT_EQ(attempts.size(), 12U);
    const BatterySummary summary = summarise(attempts);
    EXPECT_EQ(summary.accuracy.value, 1);
    EXPECT_EQ(summary.accuracy.lo, 1);
    EXPECT_EQ(summary.termination.value, 1);
    EXPECT_GT(summary.tokens.value, 5);
    EXPECT_EQ(summary.lost_at.value, 2) << "never: one behind the only turn";
}

TEST_F(BatteryTest, EachWayToFailIsSeenAsWhatItIs) {
    const std::vector<Problem> one = {battery_problems()[3]};
    const auto grade = [&](const Writer& writer, bool ends = true) {
        return run(one, writer, ends)[0].turns[0];
    };

    const TurnGrade wrong = grade([](auto&, size_t) { return "\\boxed{409}"; });
    EXPECT_FALSE(wrong.correct);
    EXPECT_TRUE(wrong.ended);
    EXPECT_EQ(wrong.box, "409");
    const TurnGrade unboxed = grade([](auto&, size_t) { return "It is 408."; });
    EXPECT_FALSE(unboxed.correct);
    EXPECT_EQ(unboxed.box, "");
    EXPECT_EQ(grade([](auto&, size_t) { return ""; }).fault, "empty");
    EXPECT_EQ(grade([](auto&, size_t) { return "aaaaaaaaaaaa"; }).fault, "degenerate");

    options_.rules.repeat_limit = 0;
    const TurnGrade endless = grade([](auto&, size_t) { return "408 408 408 \\boxed{408} and on "; }, false);
    EXPECT_TRUE(endless.correct);
    EXPECT_FALSE(endless.ended) << "it was cut at the limit";

    reasoning_ = {"<think>", "</think>"};
    EXPECT_EQ(grade([](auto&, size_t) { return "\\boxed{408}"; }).fault, "unfinished_thinking");
    EXPECT_TRUE(grade([](auto&, size_t) { return "\\boxed{1}</think>\\boxed{408}"; }).correct);
    EXPECT_FALSE(grade([](auto&, size_t) { return "\\boxed{408}</think>so it is"; }).correct)
        << "only the answer counts";
}

TEST_F(BatteryTest, ARallyIsLostAtTheFirstWrongTurn) {
    const std::vector<Problem> chains = {rally_chain(0, 5)};
    const auto attempts = run(chains, [](const Problem& problem, size_t turn) {
        return turn == 2 ? "\\boxed{13}" : right(problem, turn);
    });
    EXPECT_EQ(attempts[0].right_turns(), 2U);
    EXPECT_FALSE(attempts[0].correct());
    EXPECT_EQ(summarise(attempts).lost_at.value, 3);
    EXPECT_NEAR(summarise(attempts).accuracy.value, 0.8, 1e-9);
}

TEST_F(BatteryTest, AttemptsThatWereMadeAreNotMadeAgain) {
    options_.results = folder_ / "results.jsonl";
    int left = 4;
    options_.on_attempt = [&](size_t, size_t total) {
        EXPECT_EQ(total, 6U);
        return left-- > 0;
    };
    EXPECT_EQ(run(battery_problems(), right).size(), 4U) << "stopped";
    EXPECT_EQ(made_, 4);
    // A kill cut the last line short.
    const std::string text = read_text(options_.results);
    write_text(options_.results, text.substr(0, text.size() - 20));
    options_.on_attempt = {};
    const auto attempts = run(battery_problems(), right);
    EXPECT_EQ(attempts.size(), 6U);
    EXPECT_EQ(made_, 7) << "three of four were found whole";
    EXPECT_EQ(summarise(attempts).accuracy.value, 1);

    identity_["window"] = 1;
    test::expect_error(ErrorCode::incompatible, {"results.jsonl", "other settings"},
                       [&] { run(battery_problems(), right); });
}

TEST_F(BatteryTest, TheReportIsOnePageThatNeedsNothingElse) {
    const auto attempts = run({rally_chain(0, 5)}, right);
    const std::string page = battery_report("A </script> title", attempts, identity_).html();
    EXPECT_NE(page.find("Answers right, by turn"), std::string::npos);
    EXPECT_EQ(page.find("src="), std::string::npos);
    EXPECT_EQ(page.find("http", page.find("<script>") + 1), page.find("http://www.w3.org"))
        << "namespaces only";
    EXPECT_EQ(page.find("A </script>"), std::string::npos);
}

/// What a chain asks for, done by the reader of its words.
TEST(Rally, EveryChainFollowsFromItsOwnWords) {
    const Problem first = rally_chain(0, 5);
    EXPECT_EQ(first.answers, (std::vector<std::string>{"8", "6", "12", "8", "4"}));
    for (uint64_t seed = 1; seed < 200; ++seed) {
        const Problem chain = rally_chain(seed, 20);
        ASSERT_EQ(chain.questions.size(), 20U);
        int64_t result = 0;
        for (size_t turn = 0; turn < 20; ++turn) {
            const std::string& text = chain.questions[turn];
            std::vector<int64_t> numbers;
            const std::regex number("[0-9]+");
            for (auto it = std::sregex_iterator(text.begin(), text.end(), number);
                 it != std::sregex_iterator(); ++it) {
                numbers.push_back(std::stoll(it->str()));
            }
            ASSERT_EQ(numbers.size(), turn == 0 ? 2U : 1U) << text;
            if (turn == 0) {
                result = numbers[0] + numbers[1];
            } else if (text.starts_with("Add")) {
                result += numbers[0];
            } else if (text.starts_with("Subtract")) {
                result -= numbers[0];
            } else if (text.starts_with("Multiply")) {
                result *= numbers[0];
            } else {
                ASSERT_TRUE(text.starts_with("Divide")) << text;
                ASSERT_EQ(result % numbers[0], 0);
                result /= numbers[0];
            }
            EXPECT_EQ(chain.answers[turn], std::to_string(result)) << text;
            EXPECT_GT(result, 0);
        }
    }
}

TEST(Problems, TheMathSetsAreRead) {
    const auto gsm8k = test::shared_data("math/gsm8k_test.jsonl.gz");
    const auto math500 = test::shared_data("math/math500.jsonl.gz");
    const auto mathchat = test::shared_data("math/mathchat_follow_up.jsonl.gz");
    if (!gsm8k || !math500 || !mathchat) {
        GTEST_SKIP() << "the math sets are absent";
    }
    EXPECT_EQ(read_problems(*gsm8k).size(), 1319U);
    EXPECT_EQ(read_problems(*gsm8k)[0].answers, (std::vector<std::string>{"18"}));
    EXPECT_EQ(read_problems(*math500).size(), 500U);
    const auto chats = read_problems(*mathchat);
    EXPECT_EQ(chats.size(), 1319U);
    EXPECT_GT(chats[0].questions.size(), 1U);
    EXPECT_EQ(chats[0].answers[1], "14");
    for (const Problem& problem : chats) {
        EXPECT_EQ(problem.questions.size(), problem.answers.size());
    }
}

TEST(Problems, ARecordWithoutAnAnswerIsNamed) {
    const test::TemporaryFolder folder;
    write_text(folder / "p.jsonl",
               "{\"question\": \"1?\", \"answer\": \"#### 1\"}\n{\"question\": \"2?\"}\n");
    test::expect_error(ErrorCode::bad_file, {"p.jsonl", "record 2"},
                       [&] { read_problems(folder / "p.jsonl"); });
}

} // namespace
} // namespace spool
