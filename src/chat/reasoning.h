// The thinking part of a reply: where it begins and ends, and the text split there.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "llm/chat_template.h"

namespace spool {

/// The tags a model puts around its thinking; both empty for one that does not think.
struct ReasoningFormat {
    std::string start; ///< "<think>"
    std::string end;   ///< "</think>"

    bool thinks() const { return !start.empty(); }
};

/// "auto": what the model's template says; "none"; or "think": <think> and </think> whatever it says. Throws
/// Error{invalid_argument} naming the three.
ReasoningFormat reasoning_format(const std::string& name, const ChatTemplate& chat);

/// Splits a reply while it is streamed. A reply of a thinking model begins inside its thinking.
class ReasoningStream {
  public:
    struct Piece {
        std::string thinking;
        std::string answer;
    };

    explicit ReasoningStream(ReasoningFormat format)
        : format_(std::move(format)), thinking_(format_.thinks()) {}

    /// What of the text so far is new and certain; a possible part of the end tag is held back.
    Piece push(std::string_view text);
    /// What was held back and turned out not to be the tag.
    Piece finish();
    /// True until the end tag has been seen.
    bool thinking() const { return thinking_; }

  private:
    ReasoningFormat format_;
    bool thinking_;
    bool answer_begun_ = false;
    std::string held_;
};

} // namespace spool
