#include "chat/turn_format.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace spool {

namespace {

constexpr const char* earlier_question = "spool earlier question";
constexpr const char* earlier_reply = "spool earlier reply";

} // namespace

TurnFormat::TurnFormat(const ChatTemplate& chat, const Tokenizer& tokenizer, ReasoningFormat reasoning,
                       TurnFormatOptions options)
    : chat_(chat), tokenizer_(tokenizer), reasoning_(std::move(reasoning)), options_(std::move(options)) {
    next("?");
}

/// System messages become part of the user's text behind them, or one system message at the start.
std::vector<ChatMessage> TurnFormat::folded(const std::vector<ChatMessage>& messages,
                                            std::string instruction) const {
    const auto add = [](std::string& text, const std::string& more) {
        text += (text.empty() ? "" : "\n\n") + more;
    };
    std::vector<ChatMessage> rest;
    std::string waiting = std::move(instruction);
    std::string system;
    for (const ChatMessage& message : messages) {
        if (message.role == "system" || message.role == "developer") {
            add(waiting, message.content);
            continue;
        }
        ChatMessage kept = message;
        if (options_.system_role && rest.empty()) {
            system = std::exchange(waiting, "");
        }
        if (message.role == "user" && !waiting.empty()) {
            kept.content = std::exchange(waiting, "") + "\n\n" + message.content;
        }
        rest.push_back(std::move(kept));
    }
    if (!waiting.empty()) {
        rest.push_back({"user", waiting});
    }
    if (!system.empty()) {
        rest.insert(rest.begin(), {"system", system});
    }
    return rest;
}

std::string TurnFormat::with_thinking(std::string prompt) const {
    if (!reasoning_.thinks()) {
        return prompt;
    }
    const size_t end = prompt.find_last_not_of(" \t\r\n");
    const bool begun = end != std::string::npos && prompt.substr(0, end + 1).ends_with(reasoning_.start);
    return begun ? prompt : prompt + reasoning_.start + "\n";
}

std::vector<Token> TurnFormat::encode_start(const std::string& text) const {
    const bool has_bos = tokenizer_.bos() >= 0 && text.starts_with(tokenizer_.piece(tokenizer_.bos(), true));
    return tokenizer_.encode(text, !has_bos, true);
}

TurnPrompt TurnFormat::prompt_of(const RenderedChat& rendered, std::string text, bool starts) const {
    const std::string prompt = with_thinking(std::move(text));
    return {starts ? encode_start(prompt) : tokenizer_.encode(prompt, false, true), rendered.grammar,
            rendered.grammar_start, rendered.parser};
}

TurnPrompt TurnFormat::start(const std::vector<ChatMessage>& messages, const ToolUse& tools) const {
    std::vector<ChatMessage> all = folded(messages, options_.instruction);
    if (!options_.persona.empty()) {
        if (!all.empty() && all.front().role == "system") {
            all.front().content = options_.persona + "\n\n" + all.front().content;
        } else {
            all.insert(all.begin(), {"system", options_.persona});
        }
    }
    const RenderedChat rendered = chat_.render(all, true, tools);
    return prompt_of(rendered, rendered.prompt, true);
}

TurnPrompt TurnFormat::following(const std::vector<ChatMessage>& messages, const ToolUse& tools) const {
    std::vector<ChatMessage> all = {{"user", earlier_question}, {"assistant", earlier_reply}};
    const std::vector<ChatMessage> rest = folded(messages, "");
    all.insert(all.end(), rest.begin(), rest.end());
    const RenderedChat rendered = chat_.render(all, true, tools);
    const size_t reply = rendered.prompt.find(earlier_reply);
    if (reply == std::string::npos) {
        fail(ErrorCode::unsupported, "this model's chat template does not show an earlier reply as it was "
                                     "given, so that its turns cannot be rendered one by one; pass another "
                                     "with --chat-template");
    }
    return prompt_of(rendered, rendered.prompt.substr(reply + std::string(earlier_reply).size()), false);
}

uint32_t TurnFormat::pinned() const {
    if (options_.persona.empty()) {
        return 1;
    }
    const std::string whole =
        chat_.render({{"system", options_.persona}, {"user", earlier_question}}, true).prompt;
    const size_t persona = whole.find(options_.persona);
    const size_t end = persona == std::string::npos ? 0 : persona + options_.persona.size();
    return static_cast<uint32_t>(std::max<size_t>(1, encode_start(whole.substr(0, end)).size()));
}

} // namespace spool
