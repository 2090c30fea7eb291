// The model's own chat template, rendered by llama.cpp's Jinja.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "llm/model.h"
#include "llm/sampler.h"

namespace spool {

struct ToolCall {
    std::string id;
    std::string name;
    std::string arguments; ///< a JSON object as text
};

struct ChatMessage {
    std::string role; ///< "system", "user", "assistant" or "tool"
    std::string content;
    std::vector<ToolCall> tool_calls = {}; ///< of an assistant
    std::string tool_call_id = {};         ///< of a tool: the call it answers
};

struct ChatTool {
    std::string name;
    std::string description;
    std::string parameters; ///< JSON schema
};

/// The tools a reply may call.
struct ToolUse {
    std::vector<ChatTool> tools;
    std::string choice = "auto"; ///< "auto", "required" or "none"
    bool parallel = false;       ///< several calls in one reply
};

/// A reply in its parts.
struct ParsedReply {
    std::string content;
    std::vector<ToolCall> tool_calls;
};

/// Finds tool calls in a reply, in the form this model writes them.
class ReplyParser {
  public:
    virtual ~ReplyParser() = default;
    /// `partial`: more text will follow. Text that does not parse is content.
    virtual ParsedReply parse(const std::string& reply, bool partial) const = 0;
};

/// What a template says about thinking (the tags around it, empty if the model does not think) and tools.
struct RenderedChat {
    std::string prompt;
    std::string thinking_start;
    std::string thinking_end;
    std::string grammar = {}; ///< of tool calls; empty without tools
    GrammarStart grammar_start = {};
    std::shared_ptr<const ReplyParser> parser = {}; ///< nullptr without tools
};

/// The grammar of texts that fit a JSON schema. Throws Error{invalid_argument} with what is wrong with it.
std::string grammar_of_json_schema(const std::string& schema);

class ChatTemplate {
  public:
    /// The template in the model's file, or `source` (Jinja) if not empty. A model without a template gets
    /// ChatML, llama.cpp's default. Throws Error{invalid_argument} if the template does not parse.
    explicit ChatTemplate(const Model& model, const std::string& source = "");
    ~ChatTemplate();

    /// The conversation as text, ending where the assistant's reply begins if `add_reply_start`. The text
    /// holds control tokens: tokenise it with parse_special, and without add_special if it starts with BOS's
    /// text. Thread-safe. Throws Error{invalid_argument} with the template's own message (some refuse a
    /// system role).
    RenderedChat render(const std::vector<ChatMessage>& messages, bool add_reply_start,
                        const ToolUse& tools = {}) const;

    /// True if the template came from the model (or the caller) rather than the default.
    bool explicit_template() const;

  private:
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

} // namespace spool
