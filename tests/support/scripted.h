// A sampler whose choices are written down, to prove what happens around it.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "llm/sampler.h"

namespace spool::test {

/// Writes one text an attempt, and the end token behind it; the last text again once they are used up.
class Script final : public Chooser {
  public:
    explicit Script(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

    /// Without `ends` its last token is repeated for ever.
    void add(const std::string& text, bool ends = true) {
        replies_.push_back(tokenizer_.encode(text, false, true));
        if (ends) {
            replies_.back().push_back(tokenizer_.eos());
        }
    }
    Token sample(std::span<const float> /*logits*/) override {
        std::this_thread::sleep_for(pause);
        const auto& reply = replies_[std::min(reply_, replies_.size()) - 1];
        return reply[std::min(at_++, reply.size() - 1)];
    }
    void restart(std::span<const Token> /*history*/, uint64_t position) override {
        ++reply_;
        at_ = 0;
        positions.push_back(position);
    }

    std::vector<uint64_t> positions; ///< of every restart
    std::chrono::milliseconds pause{0};

  private:
    const Tokenizer& tokenizer_;
    std::vector<std::vector<Token>> replies_;
    size_t reply_ = 0;
    size_t at_ = 0;
};

} // namespace spool::test
