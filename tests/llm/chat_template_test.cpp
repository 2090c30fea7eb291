#include <algorithm>

#include <gtest/gtest.h>

#include "core/error.h"
#include "llm/chat_template.h"
#include "llm/tokenizer.h"
#include "support/expect_error.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::expect_error;

class DefaultTemplate : public test::WithDefaultModel {};

TEST_F(DefaultTemplate, IsSmolLm2sWithItsOwnSystemPrompt) {
    const ChatTemplate chat(*model_);
    EXPECT_TRUE(chat.explicit_template());
    const auto rendered = chat.render({{"user", "Hi"}}, true);
    EXPECT_EQ(rendered.prompt,
              "<|im_start|>system\n"
              "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
              "<|im_start|>user\nHi<|im_end|>\n"
              "<|im_start|>assistant\n");
    EXPECT_EQ(rendered.thinking_start, "") << "it does not think";
}

TEST_F(DefaultTemplate, RendersAWholeConversation) {
    const ChatTemplate chat(*model_);
    const std::vector<ChatMessage> messages = {
        {"system", "Be brief."}, {"user", "1+1?"}, {"assistant", "2"}, {"user", "And {{ 2 + 2 }}?"}};
    const std::string whole = "<|im_start|>system\nBe brief.<|im_end|>\n"
                              "<|im_start|>user\n1+1?<|im_end|>\n"
                              "<|im_start|>assistant\n2<|im_end|>\n"
                              "<|im_start|>user\nAnd {{ 2 + 2 }}?<|im_end|>\n";
    EXPECT_EQ(chat.render(messages, false).prompt, whole);
    EXPECT_EQ(chat.render(messages, true).prompt, whole + "<|im_start|>assistant\n");
}

TEST_F(DefaultTemplate, ItsControlTokensAreTokens) {
    const Tokenizer tokenizer(*model_);
    const auto tokens =
        tokenizer.encode(ChatTemplate(*model_).render({{"user", "Hi"}}, true).prompt, false, true);
    const Token start = tokenizer.encode("<|im_start|>", false, true).at(0);
    EXPECT_EQ(std::ranges::count(tokens, start), 3);
    EXPECT_EQ(tokens.front(), start);
}

class GivenTemplate : public test::WithSmallModel {};

TEST_F(GivenTemplate, ReplacesTheModels) {
    const ChatTemplate chat(*model_, "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
                                     "{% if add_generation_prompt %}[assistant]{% endif %}");
    EXPECT_TRUE(chat.explicit_template());
    EXPECT_EQ(chat.render({{"user", "Hi"}, {"assistant", "Ho"}}, false).prompt,
              "[user] Hi\n[assistant] Ho\n");
    EXPECT_EQ(chat.render({{"user", "Hi"}}, true).prompt, "[user] Hi\n[assistant]");
}

TEST_F(GivenTemplate, ThatThinksTellsItsTags) {
    const ChatTemplate chat(
        *model_, "{% for m in messages %}<|{{ m.role }}|>{{ m.content.split('</think>')[-1] }}{% endfor %}"
                 "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}");
    const auto rendered = chat.render({{"user", "Hi"}}, true);
    EXPECT_TRUE(rendered.prompt.ends_with("<think>\n")) << rendered.prompt;
    EXPECT_EQ(rendered.thinking_start, "<think>");
    EXPECT_EQ(rendered.thinking_end, "</think>");
}

TEST_F(GivenTemplate, ThatDoesNotParseIsAnErrorWithTheReason) {
    for (const char* broken :
         {"{% for m in messages %}{{ m.content }}", "{{ messages", "{% if %}x{% endif %}"}) {
        expect_error(ErrorCode::invalid_argument, {"chat template does not parse", ": "},
                     [&] { const ChatTemplate chat(*model_, broken); });
    }
}

TEST_F(GivenTemplate, ThatRefusesAConversationPassesItsReasonOn) {
    const ChatTemplate chat(*model_, "{% if messages[0].role == 'assistant' %}"
                                     "{{ raise_exception('The user has to begin') }}{% endif %}"
                                     "{% for m in messages %}{{ m.content }}{% endfor %}");
    EXPECT_EQ(chat.render({{"user", "Hi"}}, false).prompt, "Hi");
    expect_error(ErrorCode::invalid_argument, {"chat template refuses", "The user has to begin"},
                 [&] { chat.render({{"assistant", "x"}, {"user", "Hi"}}, false); });
}

TEST(NoTemplate, MeansChatMl) {
    const test::TemporaryFolder folder;
    const GgufFile with_template(test::write_small_model(folder));
    GgufWriter writer;
    for (const auto& [key, value] : with_template.pairs()) {
        if (key != "tokenizer.chat_template") {
            writer.set(key, value);
        }
    }
    for (const GgufTensor& tensor : with_template.tensors()) {
        writer.add(tensor.name, tensor.type, tensor.ne, tensor.data);
    }
    writer.write(folder / "plain.gguf");
    const auto model = test::load_model(folder / "plain.gguf");
    const ChatTemplate chat(*model);
    EXPECT_FALSE(chat.explicit_template());
    EXPECT_EQ(chat.render({{"user", "Hi"}}, true).prompt,
              "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

} // namespace
} // namespace spool
