#include "llm/chat_template.h"

#include <exception>
#include <mutex>

#include "chat.h"
#include "core/error.h"
#include "json-schema-to-grammar.h"

namespace spool {

namespace {

class PegReplyParser final : public ReplyParser {
  public:
    explicit PegReplyParser(const common_chat_params& rendered) : params_(rendered) {
        if (!rendered.parser.empty()) {
            params_.parser.load(rendered.parser);
        }
    }

    ParsedReply parse(const std::string& reply, bool partial) const override {
        try {
            const common_chat_msg message = common_chat_parse(reply, partial, params_);
            ParsedReply parsed{message.content, {}};
            for (const auto& call : message.tool_calls) {
                parsed.tool_calls.push_back({call.id, call.name, call.arguments});
            }
            return parsed;
        } catch (const std::exception&) {
            return {reply, {}};
        }
    }

  private:
    common_chat_parser_params params_;
};

common_chat_msg converted(const ChatMessage& message) {
    common_chat_msg result;
    result.role = message.role;
    result.content = message.content;
    result.tool_call_id = message.tool_call_id;
    for (const ToolCall& call : message.tool_calls) {
        result.tool_calls.push_back({call.name, call.arguments, call.id});
    }
    return result;
}

/// Words and patterns that start a grammar, as regular expressions and tokens.
GrammarStart start_of(const common_chat_params& rendered) {
    GrammarStart start{.lazy = rendered.grammar_lazy, .patterns = {}, .tokens = {}, .prefill = {}};
    for (const common_grammar_trigger& trigger : rendered.grammar_triggers) {
        switch (trigger.type) {
        case COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN:
            start.tokens.push_back(trigger.token);
            break;
        case COMMON_GRAMMAR_TRIGGER_TYPE_WORD:
            start.patterns.push_back(regex_escape(trigger.value));
            break;
        case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN:
            start.patterns.push_back(trigger.value);
            break;
        case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL:
            start.patterns.push_back("^" + trigger.value + "$");
            break;
        }
    }
    if (!start.lazy) {
        start.prefill = rendered.generation_prompt;
    }
    return start;
}

} // namespace

std::string grammar_of_json_schema(const std::string& schema) {
    try {
        return json_schema_to_grammar(common_json::parse(schema));
    } catch (const std::exception& error) {
        fail(ErrorCode::invalid_argument, "the JSON schema cannot be used: {}", error.what());
    }
}

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

RenderedChat ChatTemplate::render(const std::vector<ChatMessage>& messages, bool add_reply_start,
                                  const ToolUse& tools) const {
    common_chat_templates_inputs inputs;
    inputs.add_generation_prompt = add_reply_start;
    for (const auto& message : messages) {
        inputs.messages.push_back(converted(message));
    }
    for (const auto& tool : tools.tools) {
        inputs.tools.push_back({tool.name, tool.description, tool.parameters});
    }
    const bool calls = !tools.tools.empty() && tools.choice != "none";
    // llama.cpp tells templates the date by localtime(), which only one thread at a time may call.
    static std::mutex one_at_a_time;
    const std::scoped_lock lock(one_at_a_time);
    try {
        inputs.tool_choice = common_chat_tool_choice_parse_oaicompat(tools.choice);
        inputs.parallel_tool_calls = tools.parallel;
        const auto rendered = common_chat_templates_apply(implementation_->templates.get(), inputs);
        RenderedChat result{rendered.prompt, rendered.thinking_start_tag,
                            rendered.thinking_end_tags.empty() ? "" : rendered.thinking_end_tags.front()};
        if (calls) {
            result.grammar = rendered.grammar;
            result.grammar_start = start_of(rendered);
            result.parser = std::make_shared<PegReplyParser>(rendered);
        }
        return result;
    } catch (const std::exception& error) {
        fail(ErrorCode::invalid_argument, "the chat template refuses this conversation: {}", error.what());
    }
}

bool ChatTemplate::explicit_template() const {
    return common_chat_templates_was_explicit(implementation_->templates.get());
}

} // namespace spool
