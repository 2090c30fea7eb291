// A tokenizer for tests that need no model, with the habits that make counting tokens hard: long words take
// several tokens, punctuation merges with a newline behind it, digits stand alone.
#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "corpus/encoder.h"

namespace spool::test {

class ToyEncoder final : public Encoder {
  public:
    static constexpr Token end_token = 0;
    static constexpr int32_t vocab_size = 1 << 20;
    bool opens_think = false;    ///< the template ends with <think>
    bool refuses_system = false; ///< the template knows no system role

    ToyEncoder() {
        for (const char* control : {"<|end|>", "<think>", "</think>"}) {
            intern(control);
        }
    }

    EncodedPrompt prompt(const std::vector<Message>& messages) const override {
        EncodedPrompt result;
        for (const Message& message : messages) {
            if (message.role == "system" && refuses_system) {
                fail(ErrorCode::invalid_argument, "System role not supported");
            }
            result.text += message.role + ": " + message.content + "\n";
        }
        result.text += opens_think ? "assistant:\n<think>\n" : "assistant:\n";
        result.tokens = reply(result.text);
        return result;
    }

    std::vector<Token> reply(std::string_view text) const override {
        std::vector<Token> tokens;
        while (!text.empty()) {
            const size_t length = next(text);
            tokens.push_back(intern(std::string(text.substr(0, length))));
            text.remove_prefix(length);
        }
        return tokens;
    }

    bool holds_control_token(std::string_view text) const override {
        return text.find("<|end|>") != std::string_view::npos;
    }
    std::string piece(Token token) const override {
        const std::scoped_lock lock(mutex_);
        return pieces_.at(static_cast<size_t>(token));
    }
    Token end() const override { return end_token; }
    ThinkTags tags() const override { return {}; }

    template <typename Tokens>
    std::string text(const Tokens& tokens) const {
        std::string result;
        for (const Token token : tokens) {
            result += piece(token);
        }
        return result;
    }

  private:
    static bool is(int (*kind)(int), char c) { return kind(static_cast<unsigned char>(c)) != 0; }

    static size_t next(std::string_view text) {
        for (const std::string_view tag : {"<think>", "</think>"}) {
            if (text.starts_with(tag)) {
                return tag.size();
            }
        }
        size_t i = text.front() == ' ' && text.size() > 1 && is(std::isalpha, text[1]) ? 1 : 0;
        if (i < text.size() && is(std::isalpha, text[i])) {
            const size_t most = i + 5;
            while (i < text.size() && i < most && is(std::isalpha, text[i])) {
                ++i;
            }
            return i;
        }
        if (is(std::ispunct, text.front()) && text.size() > 1 && text[1] == '\n') {
            return 2;
        }
        return 1;
    }

    Token intern(const std::string& piece) const {
        const std::scoped_lock lock(mutex_);
        const auto [found, added] = ids_.emplace(piece, static_cast<Token>(pieces_.size()));
        if (added) {
            pieces_.push_back(piece);
        }
        return found->second;
    }

    mutable std::mutex mutex_;
    mutable std::map<std::string, Token> ids_;
    mutable std::vector<std::string> pieces_;
};

} // namespace spool::test
