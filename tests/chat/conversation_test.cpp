// Turns of a small random model whose tokens a script chooses.
#include <gtest/gtest.h>

#include "chat/conversation.h"
#include "core/random.h"
#include "support/scripted.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::Script;

constexpr const char* chat_template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]\n{% endfor %}"
                                      "{% if add_generation_prompt %}[assistant]{% endif %}";

class ConversationTest : public test::WithSmallModel {
  protected:
    ConversationTest() {
        PoolOptions options;
        options.memory.strategy = StrategyKind::window;
        options.memory.window = 48;
        options.memory.chunk = 16;
        options.memory.pin = 1;
        options.threads = 1;
        pool_.emplace(*model_, nullptr, options);
        session_ = pool_->open();
    }

    Conversation conversation(const TurnFormat& format, Chooser& chooser) {
        return Conversation({*session_, tokenizer_, format, chooser}, rules_);
    }

    Tokenizer tokenizer_{*model_};
    ChatTemplate chat_{*model_, chat_template};
    TurnFormat plain_{chat_, tokenizer_, {}, {}};
    TurnFormat thinking_{chat_, tokenizer_, {"<think>", "</think>"}, {}};
    std::optional<SessionPool> pool_;
    std::unique_ptr<Session> session_;
    TurnRules rules_;
    Script script_{tokenizer_};
};

TEST_F(ConversationTest, TurnsAreReadAsTheTemplateWritesThem) {
    script_.add("Hello!");
    script_.add("Fine.");
    Conversation chat = conversation(plain_, script_);
    EXPECT_EQ(chat.say("Hi").answer, "Hello!");
    EXPECT_EQ(chat.say("How are you?").answer, "Fine.");
    const std::string all = tokenizer_.decode(session_->transcript().tokens, true);
    EXPECT_TRUE(all.ends_with("[user]Hi[/]\n[assistant]Hello![/]\n[user]How are you?[/]\n[assistant]Fine."))
        << all;
    EXPECT_EQ(session_->transcript().pinned, 1U);
    EXPECT_EQ(chat.turns().size(), 2U);
}

TEST_F(ConversationTest, ThinkingIsKeptApart) {
    script_.add("Let me see.</think>\n\nFour.");
    Conversation chat = conversation(thinking_, script_);
    std::string thought;
    std::string answer;
    const Turn turn = chat.say("2 + 2?", {.on_thinking = [&](auto text) { thought += text; },
                                          .on_answer = [&](auto text) { answer += text; },
                                          .on_retry = {},
                                          .on_token = {}});
    EXPECT_EQ(turn.thinking, "Let me see.");
    EXPECT_EQ(turn.answer, "Four.");
    EXPECT_EQ(thought, turn.thinking);
    EXPECT_EQ(answer, turn.answer);
    EXPECT_EQ(turn.fault, TurnFault::none);
}

TEST_F(ConversationTest, ARejectedReplyIsDrawnAgainFromTheSameState) {
    script_.add("", true);
    script_.add(" \n ", true);
    script_.add("aaaaaaaaaaaa");
    script_.add("Good.");
    Conversation chat = conversation(plain_, script_);
    std::vector<TurnFault> faults;
    const Turn turn = chat.say("Hi", {.on_thinking = {},
                                      .on_answer = {},
                                      .on_retry = [&](TurnFault fault, uint32_t) { faults.push_back(fault); },
                                      .on_token = {}});
    EXPECT_EQ(turn.answer, "Good.");
    EXPECT_EQ(turn.attempts, 4U);
    EXPECT_EQ(faults, (std::vector{TurnFault::empty, TurnFault::empty, TurnFault::degenerate}));
    ASSERT_EQ(script_.positions.size(), 4U);
    for (size_t i = 1; i < 4; ++i) {
        EXPECT_EQ(script_.positions[i] & 0xFFFFFFFF, script_.positions[0]) << "from the same place";
        EXPECT_NE(script_.positions[i], script_.positions[i - 1]) << "but another draw";
    }
    const std::string all = tokenizer_.decode(session_->transcript().tokens, true);
    EXPECT_TRUE(all.ends_with("[user]Hi[/]\n[assistant]Good.")) << all;
    EXPECT_EQ(all.find("aaaa"), std::string::npos) << "nothing of the rejected is left";
}

TEST_F(ConversationTest, WhenNoReplyCanStandNothingIsKeptAndTheReasonIsGiven) {
    script_.add("First.");
    script_.add("never closes");
    Conversation chat = conversation(plain_, script_);
    chat.say("One");
    const std::string before = chat.state_hash();

    Conversation other({*session_, tokenizer_, thinking_, script_}, rules_);
    const Turn unfinished = other.say("Two");
    EXPECT_EQ(unfinished.fault, TurnFault::unfinished_thinking);
    EXPECT_EQ(unfinished.attempts, 1 + rules_.retries);
    EXPECT_EQ(chat.state_hash(), before);

    script_.add("too slow, too slow, too slow, too slow");
    script_.pause = std::chrono::milliseconds(5);
    rules_.max_seconds = 0.03;
    rules_.retries = 0;
    Conversation hurried = conversation(plain_, script_);
    EXPECT_EQ(hurried.say("Three").fault, TurnFault::timed_out);
    EXPECT_EQ(chat.state_hash(), before);
}

TEST_F(ConversationTest, AnInterruptedReplyStandsAsFarAsItCame) {
    std::atomic<bool> stop{false};
    script_.add("Once upon a time there was");
    Conversation chat = conversation(plain_, script_);
    const Turn turn = chat.say("Tell me", {.on_thinking = {},
                                           .on_answer = [&](auto) { stop = true; },
                                           .on_retry = {},
                                           .on_token = {},
                                           .interrupted = &stop});
    EXPECT_EQ(turn.reason, StopReason::interrupted);
    EXPECT_EQ(turn.fault, TurnFault::none);
    EXPECT_FALSE(turn.answer.empty());
    EXPECT_EQ(chat.turns().size(), 1U);

    const std::string before = chat.state_hash();
    const Turn nothing = chat.say(
        "More", {.on_thinking = {}, .on_answer = {}, .on_retry = {}, .on_token = {}, .interrupted = &stop});
    EXPECT_EQ(nothing.attempts, 1U) << "Ctrl-C is not answered with another try";
    EXPECT_EQ(chat.state_hash(), before);
}

TEST_F(ConversationTest, UndoGoesBackAFewTurnsAndNoFurther) {
    for (const char* text : {"1.", "2.", "3.", "4.", "5.", "6."}) {
        script_.add(text);
    }
    Conversation chat = conversation(plain_, script_);
    std::vector<std::string> hashes;
    for (int i = 0; i < 6; ++i) {
        hashes.push_back(chat.state_hash());
        chat.say("Next, please, and take your time about it");
    }
    for (size_t i = 0; i < Conversation::most_undone; ++i) {
        ASSERT_TRUE(chat.undo());
        EXPECT_EQ(chat.state_hash(), hashes[5 - i]);
    }
    EXPECT_FALSE(chat.undo());
    EXPECT_EQ(chat.turns().size(), 2U);
    chat.reset();
    EXPECT_EQ(chat.state_hash(), hashes[0]);
}

/// Any sequence of turns, replies that cannot stand, undos and retries leaves what the turns that stand
/// alone would have left.
TEST_F(ConversationTest, AThousandRandomTurnsRollbacksAndRetries) {
    Random random(1);
    rules_.retries = 1;
    rules_.max_tokens = 12;
    std::vector<std::string> hashes; // before each turn that can be undone
    Conversation chat = conversation(plain_, script_);
    for (int step = 0; step < 1000; ++step) {
        const std::string before = chat.state_hash();
        const uint64_t draw = random.below(10);
        if (draw < 5) {
            const std::vector<std::string> replies = {"Reply " + std::to_string(step), "", "zzzzzzzzzzzz"};
            Script script(tokenizer_);
            script.add(replies[random.below(3)]);
            script.add(replies[random.below(3)]);
            Conversation one({*session_, tokenizer_, plain_, script}, rules_);
            one.say("Question " + std::to_string(random.below(1000)));
            one.undo();
            ASSERT_EQ(chat.state_hash(), before) << "step " << step;
        } else if (draw < 8) {
            script_.add("Kept " + std::to_string(step));
            const Turn turn = chat.say("Question " + std::to_string(random.below(1000)));
            ASSERT_EQ(turn.fault, TurnFault::none);
            hashes.push_back(before);
        } else if (draw == 8 && !hashes.empty()) {
            if (chat.undo()) {
                ASSERT_EQ(chat.state_hash(), hashes.back()) << "step " << step;
                hashes.pop_back();
            } else {
                hashes.clear();
            }
        } else {
            script_.add("Again " + std::to_string(step));
            const bool could = chat.retry().has_value();
            if (could) {
                ASSERT_TRUE(chat.undo());
                ASSERT_EQ(chat.state_hash(), hashes.back()) << "step " << step;
                hashes.pop_back();
            }
        }
    }
}

} // namespace
} // namespace spool
