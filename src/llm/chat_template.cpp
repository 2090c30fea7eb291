#include "llm/chat_template.h"

#include <exception>

#include "chat.h"
#include "core/error.h"

namespace spool {

struct ChatTemplate::Implementation {
    common_chat_templates_ptr templates;
};

ChatTemplate::ChatTemplate(const Model& model, const std::string& source)
    : implementation_(std::make_unique<Implementation>()) {
    try {
        implementation_->templates = common_chat_templates_init(model.handle(), source);
    } catch (const std::exception& error) {
        fail(ErrorCode::invalid_argument, "the chat template does not parse: {}", error.what());
    }
}

ChatTemplate::~ChatTemplate() = default;

RenderedChat ChatTemplate::render(const std::vector<ChatMessage>& messages, bool add_reply_start) const {
    common_chat_templates_inputs inputs;
    inputs.add_generation_prompt = add_reply_start;
    for (const auto& message : messages) {
        common_chat_msg converted;
        converted.role = message.role;
        converted.content = message.content;
        inputs.messages.push_back(std::move(converted));
    }
    try {
        const auto rendered = common_chat_templates_apply(implementation_->templates.get(), inputs);
        return {rendered.prompt, rendered.thinking_start_tag,
                rendered.thinking_end_tags.empty() ? "" : rendered.thinking_end_tags.front()};
    } catch (const std::exception& error) {
        fail(ErrorCode::invalid_argument, "the chat template refuses this conversation: {}", error.what());
    }
}

bool ChatTemplate::explicit_template() const {
    return common_chat_templates_was_explicit(implementation_->templates.get());
}

} // namespace spool
