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

std::vector<ChatMessage> TurnFormat::opening(const std::string& user) const {
    std::vector<ChatMessage> messages;
    std::string system = options_.persona;
    std::string first = user;
    if (!options_.instruction.empty()) {
        if (options_.system_role) {
            system += (system.empty() ? "" : "\n\n") + options_.instruction;
        } else {
            first = options_.instruction + "\n\n" + user;
        }
    }
    if (!system.empty()) {
        messages.push_back({"system", system});
    }
    messages.push_back({"user", first});
    return messages;
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

std::vector<Token> TurnFormat::first(const std::string& user) const {
    return encode_start(with_thinking(chat_.render(opening(user), true).prompt));
}

std::vector<Token> TurnFormat::next(const std::string& user) const {
    const std::string whole =
        chat_.render({{"user", earlier_question}, {"assistant", earlier_reply}, {"user", user}}, true).prompt;
    const size_t reply = whole.find(earlier_reply);
    if (reply == std::string::npos) {
        fail(ErrorCode::unsupported, "this model's chat template does not show an earlier reply as it was "
                                     "given, so that its turns cannot be rendered one by one; pass another "
                                     "with --chat-template");
    }
    return tokenizer_.encode(with_thinking(whole.substr(reply + std::string(earlier_reply).size())), false,
                             true);
}

uint32_t TurnFormat::pinned() const {
    if (options_.persona.empty()) {
        return 1;
    }
    const std::string whole = chat_.render(opening(earlier_question), true).prompt;
    const size_t persona = whole.find(options_.persona);
    const size_t end = persona == std::string::npos ? 0 : persona + options_.persona.size();
    return static_cast<uint32_t>(std::max<size_t>(1, encode_start(whole.substr(0, end)).size()));
}

} // namespace spool
