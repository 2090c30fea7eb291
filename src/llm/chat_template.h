// The model's own chat template, rendered by llama.cpp's Jinja.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "llm/model.h"

namespace spool {

struct ChatMessage {
    std::string role; ///< "system", "user" or "assistant"
    std::string content;
};

/// What a template says about thinking: the tags around it, empty if the model does not think.
struct RenderedChat {
    std::string prompt;
    std::string thinking_start;
    std::string thinking_end;
};

class ChatTemplate {
  public:
    /// The template in the model's file, or `source` (Jinja) if not empty. A model without a template gets
    /// ChatML, llama.cpp's default. Throws Error{invalid_argument} if the template does not parse.
    explicit ChatTemplate(const Model& model, const std::string& source = "");
    ~ChatTemplate();

    /// The conversation as text, ending where the assistant's reply begins if `add_reply_start`. The text
    /// holds control tokens: tokenise it with parse_special, and without add_special if it starts with BOS's
    /// text. Throws Error{invalid_argument} with the template's own message (some refuse a system role).
    RenderedChat render(const std::vector<ChatMessage>& messages, bool add_reply_start) const;

    /// True if the template came from the model (or the caller) rather than the default.
    bool explicit_template() const;

  private:
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

} // namespace spool
