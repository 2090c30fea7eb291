#include <gtest/gtest.h>

#include "corpus/shapes.h"

namespace spool {
namespace {

ShapeResult read(const char* text) { return traces_of(Json::parse(text)); }

Trace only(const char* text) {
    const ShapeResult result = read(text);
    EXPECT_EQ(result.traces.size(), 1U) << text;
    EXPECT_TRUE(result.rejected.empty()) << result.rejected[0].reason;
    return result.traces.empty() ? Trace{} : result.traces[0];
}

std::string conversation(const Trace& trace) {
    std::string text;
    for (const Message& message : trace.messages) {
        text += message.role + "=" + message.content + ";";
    }
    return text + "think=" + trace.think + ";answer=" + trace.answer;
}

TEST(Shapes, prompt_think_answer) {
    EXPECT_EQ(conversation(only(R"({"id":"x","prompt":" Why? ","think":"\nHm.\n","answer":"So."})")),
              "user=Why?;think=Hm.;answer=So.");
    EXPECT_EQ(
        conversation(only(R"({"system":"Be brief.","question":"Why?","answer":"<think>Hm.</think>So."})")),
        "system=Be brief.;user=Why?;think=Hm.;answer=So.");
    EXPECT_EQ(conversation(only(R"({"prompt":"Why?","think":"<think>\nHm.\n</think>","answer":""})")),
              "user=Why?;think=Hm.;answer=");
    EXPECT_EQ(conversation(only(R"({"prompt":"Why?","answer":"So."})")), "user=Why?;think=;answer=So.");
}

TEST(Shapes, dolphin_r1_has_messages_without_the_reply_and_reasoning_beside_them) {
    EXPECT_EQ(
        conversation(only(R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"Why?"}],
                                    "reasoning":"Hm.","answer":"So.","model":"deepseek-reasoner"})")),
        "system=S;user=Why?;think=Hm.;answer=So.");
}

TEST(Shapes, open_thoughts_has_a_system_prompt_and_tags_of_its_own) {
    EXPECT_EQ(conversation(only(R"({"system":"Use <|begin_of_thought|> {thought} <|end_of_thought|>.",
          "conversations":[{"from":"user","value":"Why?"},{"from":"assistant","value":
          "<|begin_of_thought|>\n\nHm.\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\nSo.\n\n<|end_of_solution|>"}]})")),
              "user=Why?;think=Hm.;answer=So.");
    EXPECT_EQ(conversation(only(R"({"system":"Be kind.","conversations":[{"from":"human","value":"Why?"},
                                    {"from":"gpt","value":"So."}]})")),
              "system=Be kind.;user=Why?;think=;answer=So.");
}

TEST(Shapes, open_r1_math_keeps_the_generations_that_are_complete_and_right) {
    const ShapeResult result = read(R"({"problem":"1+1?","solution":"s","answer":"2",
        "generations":["<think>\na\n</think>\n\n2","<think>b</think>3","<think>c</think>2","<think>d"],
        "correctness_math_verify":[true,false,false,true],"correctness_llama":[null,false,true,null],
        "is_reasoning_complete":[true,true,true,false],
        "messages":[{"role":"user","content":"1+1?"},{"role":"assistant","content":"<think>a</think>2"}]})");
    ASSERT_EQ(result.traces.size(), 2U);
    EXPECT_EQ(conversation(result.traces[0]), "user=1+1?;think=a;answer=2");
    EXPECT_EQ(conversation(result.traces[1]), "user=1+1?;think=c;answer=2");
    ASSERT_EQ(result.rejected.size(), 2U);
    EXPECT_EQ(result.rejected[0].reason, "incorrect");
    EXPECT_EQ(result.rejected[1].reason, "incomplete");
    EXPECT_EQ(read(R"({"problem":"1+1?","generations":["<think>a</think>2","<think>b</think>2"],
                       "correctness_llama":null})")
                  .traces.size(),
              2U)
        << "without verdicts all count";
}

TEST(Shapes, messages_end_with_the_reply_and_earlier_turns_belong_to_the_prompt) {
    EXPECT_EQ(
        conversation(only(R"({"messages":[{"role":"user","content":"A?"},{"role":"assistant","content":"B."},
        {"role":"user","content":"C?"},{"role":"assistant","content":"Hm.\n</think>\nD."}]})")),
        "user=A?;assistant=B.;user=C?;think=Hm.;answer=D.");
    EXPECT_EQ(conversation(only(R"({"messages":[{"role":"user","content":"A?"},
        {"role":"assistant","content":"B.","reasoning_content":"Hm."}]})")),
              "user=A?;think=Hm.;answer=B.");
}

TEST(Shapes, what_cannot_be_read_is_rejected_by_reason) {
    const std::vector<std::pair<const char*, const char*>> cases = {
        {"[1]", "not_an_object"},
        {"{}", "no_prompt"},
        {R"({"prompt":7,"answer":"x"})", "no_prompt"},
        {R"({"prompt":"Why?"})", "no_reply"},
        {R"({"prompt":"Why?","answer":{"a":1}})", "no_reply"},
        {R"({"prompt":"Why?","answer":"<think>Hm, so"})", "unfinished_think"},
        {R"({"messages":[{"role":"assistant","content":"x"}]})", "no_prompt"},
        {R"({"messages":[{"role":"user","content":""},{"role":"assistant","content":"x"}]})", "no_prompt"},
        {R"({"messages":[{"role":"tool","content":"x"}]})", "bad_messages"},
        {R"({"messages":["hello"]})", "bad_messages"},
        {R"({"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"},{"role":"assistant","content":"c"}]})",
         "bad_messages"},
        {R"({"problem":"1+1?","generations":[5]})", "no_reply"},
        {R"({"generations":["<think>a</think>2"]})", "no_prompt"},
    };
    for (const auto& [text, reason] : cases) {
        const ShapeResult result = read(text);
        EXPECT_TRUE(result.traces.empty()) << text;
        ASSERT_EQ(result.rejected.size(), 1U) << text;
        EXPECT_EQ(result.rejected[0].reason, reason) << text;
    }
}

} // namespace
} // namespace spool
