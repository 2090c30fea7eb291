#include <gtest/gtest.h>

#include "chat/reasoning.h"
#include "chat/turn_format.h"
#include "support/expect_error.h"
#include "support/small_model.h"

namespace spool {
namespace {

/// thinking|answer of a text pushed in pieces of `step` bytes.
std::string split(const std::string& text, size_t step, const ReasoningFormat& format) {
    ReasoningStream stream(format);
    std::string thinking;
    std::string answer;
    const auto take = [&](const ReasoningStream::Piece& piece) {
        thinking += piece.thinking;
        answer += piece.answer;
    };
    for (size_t i = 0; i < text.size(); i += step) {
        take(stream.push(text.substr(i, step)));
    }
    take(stream.finish());
    return thinking + "|" + answer;
}

TEST(ReasoningStream, SplitsWhereverTheTextIsCut) {
    const ReasoningFormat format{"<think>", "</think>"};
    for (size_t step = 1; step < 40; ++step) {
        EXPECT_EQ(split("a < b </thin> c\n</think>\n\nSo </think> it is.", step, format),
                  "a < b </thin> c\n|So </think> it is.");
        EXPECT_EQ(split("never closed </thi", step, format), "never closed </thi|");
        EXPECT_EQ(split("</think>Yes", step, format), "|Yes");
        EXPECT_EQ(split("plain\ntext", step, {}), "|plain\ntext");
    }
}

class TurnFormatTest : public test::WithSmallModel {
  protected:
    std::string text(const std::vector<Token>& tokens) const { return tokenizer_.decode(tokens, true); }

    /// As R1's: no system role, BOS, thinking begun by the template, earlier thinking dropped.
    const std::string r1_ =
        "{% for m in messages %}{% if m.role == 'user' %}<U>{{ m.content }}{% else %}<A>{{ "
        "m.content.split('</think>')[-1] }}<E>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<A><think>\n{% endif %}";
    /// As SmolLM2's: a system prompt of its own, unless there is one.
    const std::string chatml_ =
        "{% for m in messages %}{% if loop.first and m.role != 'system' %}[system]Be good.[/]\n{% endif %}"
        "[{{ m.role }}]{{ m.content }}[/]\n{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}";
    Tokenizer tokenizer_{*model_};
};

TEST_F(TurnFormatTest, ALaterTurnClosesTheReplyBeforeItAndAddsNothingElse) {
    const ChatTemplate r1(*model_, r1_);
    const TurnFormat thinking(r1, tokenizer_, {"<think>", "</think>"}, {});
    EXPECT_TRUE(text(thinking.first("Hi")).ends_with("<U>Hi<A><think>\n")) << text(thinking.first("Hi"));
    EXPECT_EQ(text(thinking.next("And?")), "<E><U>And?<A><think>\n");

    const ChatTemplate chatml(*model_, chatml_);
    const TurnFormat plain(chatml, tokenizer_, {}, {});
    EXPECT_TRUE(text(plain.first("Hi")).ends_with("[system]Be good.[/]\n[user]Hi[/]\n[assistant]"));
    EXPECT_EQ(text(plain.next("And?")), "[/]\n[user]And?[/]\n[assistant]");
    const TurnFormat forced(chatml, tokenizer_, {"<think>", "</think>"}, {});
    EXPECT_TRUE(text(forced.next("And?")).ends_with("[assistant]<think>\n"));
}

TEST_F(TurnFormatTest, AnInstructionGoesIntoTheFirstUserTurnUnlessItIsToStay) {
    const ChatTemplate chatml(*model_, chatml_);
    TurnFormatOptions options{.persona = "", .instruction = "Be brief.", .system_role = false};
    EXPECT_TRUE(text(TurnFormat(chatml, tokenizer_, {}, options).first("Hi"))
                    .ends_with("[user]Be brief.\n\nHi[/]\n[assistant]"));
    options.system_role = true;
    EXPECT_TRUE(text(TurnFormat(chatml, tokenizer_, {}, options).first("Hi"))
                    .ends_with("[system]Be brief.[/]\n[user]Hi[/]\n[assistant]"));
    EXPECT_EQ(text(TurnFormat(chatml, tokenizer_, {}, options).next("Hm")), "[/]\n[user]Hm[/]\n[assistant]");
}

TEST_F(TurnFormatTest, PersonaAndBosStayPinnedAndNothingElse) {
    const ChatTemplate chatml(*model_, chatml_);
    EXPECT_EQ(TurnFormat(chatml, tokenizer_, {}, {}).pinned(), 1U);
    const TurnFormat format(chatml, tokenizer_, {},
                            {.persona = "You are Ada.", .instruction = "", .system_role = false});
    const auto tokens = format.first("Hi");
    const std::vector<Token> pinned(tokens.begin(), tokens.begin() + format.pinned());
    EXPECT_TRUE(text(pinned).ends_with("[system]You are Ada.")) << text(pinned);
}

TEST_F(TurnFormatTest, ATemplateThatHidesEarlierRepliesIsRefused) {
    const ChatTemplate hiding(
        *model_, "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}");
    test::expect_error(ErrorCode::unsupported, {"--chat-template"},
                       [&] { TurnFormat(hiding, tokenizer_, {}, {}); });
}

} // namespace
} // namespace spool
