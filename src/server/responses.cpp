#include "server/responses.h"

#include <random>
#include <utility>

#include "server/api_error.h"

namespace spool {

namespace {

std::string key_of(const std::string& id) { return fmt::format("response \"{}\"", id); }

/// An input item as a message of the chat route.
Json message_of(const Json& item, size_t index) {
    const std::string type = item.is_object() ? item.value("type", "message") : "";
    if (type == "message") {
        return {{"role", item.value("role", Json("user"))}, {"content", item.value("content", Json(""))}};
    }
    if (type == "function_call") {
        const Json function = {{"name", item.value("name", Json(""))},
                               {"arguments", item.value("arguments", Json("{}"))}};
        return {{"role", "assistant"},
                {"content", ""},
                {"tool_calls", {{{"id", item.value("call_id", Json(""))}, {"function", function}}}}};
    }
    if (type == "function_call_output") {
        return {{"role", "tool"},
                {"tool_call_id", item.value("call_id", Json(""))},
                {"content", item.value("output", Json(""))}};
    }
    bad_request(fmt::format("input[{}]: type \"{}\" is not message, function_call or function_call_output",
                            index, type));
}

/// The chat route's shape of the same request.
Json chat_body_of(const Json& body) {
    Json chat = body;
    Json messages = Json::array();
    if (body.value("instructions", Json()).is_string()) {
        messages.push_back({{"role", "system"}, {"content", body["instructions"]}});
    }
    const Json input = body.value("input", Json());
    if (input.is_string()) {
        messages.push_back({{"role", "user"}, {"content", input}});
    } else if (input.is_array()) {
        for (size_t i = 0; i < input.size(); ++i) {
            if (input[i].is_object() && input[i].value("type", "") == "reasoning") {
                continue; // a client's copy of earlier thinking
            }
            messages.push_back(message_of(input[i], i));
        }
    } else {
        bad_request("input: expected a text or an array of items");
    }
    chat["messages"] = std::move(messages);
    chat["max_completion_tokens"] = body.value("max_output_tokens", Json());
    const Json tools = body.value("tools", Json());
    if (tools.is_array()) {
        chat["tools"] = Json::array();
        for (const Json& tool : tools) {
            chat["tools"].push_back({{"type", "function"}, {"function", tool}});
        }
    }
    const Json choice = body.value("tool_choice", Json());
    if (choice.is_object()) {
        chat["tool_choice"] = {{"function", {{"name", choice.value("name", Json(""))}}}};
    }
    const Json text = body.value("text", Json());
    const Json format = text.is_object() ? text.value("format", Json()) : Json();
    if (format.is_object()) {
        chat["response_format"] = format;
    }
    return chat;
}

class ResponseWriter final : public ReplyWriter {
  public:
    ResponseWriter(std::string id, std::string model)
        : id_(std::move(id)), model_(std::move(model)), created_(seconds_since_epoch()) {}

    Json whole(const std::vector<TurnOutcome>& choices) override {
        const TurnOutcome& outcome = choices.front();
        const bool complete =
            outcome.turn.reason == StopReason::end_token || outcome.turn.reason == StopReason::stop_string;
        Json json = head(complete ? "completed" : "incomplete");
        if (!complete) {
            json["incomplete_details"] = {{"reason", "max_output_tokens"}};
        }
        json["output"] = items_of(outcome);
        const Json usage = usage_of(choices);
        json["usage"] = {{"input_tokens", usage["prompt_tokens"]},
                         {"input_tokens_details", usage["prompt_tokens_details"]},
                         {"output_tokens", usage["completion_tokens"]},
                         {"output_tokens_details", usage["completion_tokens_details"]},
                         {"total_tokens", usage["total_tokens"]}};
        return json;
    }
    Events begin(size_t /*choice*/) override {
        const Json response = head("in_progress");
        return {event("response.created", {{"response", response}}),
                event("response.in_progress", {{"response", response}})};
    }
    Events thinking(size_t /*choice*/, std::string_view text) override {
        Events events;
        if (!thinking_begun_) {
            thinking_begun_ = true;
            events.push_back(event("response.output_item.added",
                                   {{"output_index", 0}, {"item", reasoning_item("", "in_progress")}}));
        }
        events.push_back(
            event("response.reasoning_text.delta",
                  {{"item_id", reasoning_id()}, {"output_index", 0}, {"content_index", 0}, {"delta", text}}));
        return events;
    }
    Events answer(size_t /*choice*/, std::string_view text) override {
        Events events;
        if (!answer_begun_) {
            answer_begun_ = true;
            events.push_back(
                event("response.output_item.added",
                      {{"output_index", message_index()}, {"item", message_item("", "in_progress")}}));
            events.push_back(event("response.content_part.added", part("")));
        }
        Json delta = place();
        delta["delta"] = text;
        events.push_back(event("response.output_text.delta", delta));
        return events;
    }
    Events end(size_t /*choice*/, const TurnOutcome& outcome) override {
        Events events;
        const Json items = items_of(outcome);
        if (answer_begun_) {
            Json done = place();
            done["text"] = outcome.turn.answer;
            events.push_back(event("response.output_text.done", done));
            events.push_back(event("response.content_part.done", part(outcome.turn.answer)));
        }
        for (size_t i = 0; i < items.size(); ++i) {
            if (items[i]["type"] == "function_call") {
                Json begun = items[i];
                begun["arguments"] = "";
                events.push_back(event("response.output_item.added", {{"output_index", i}, {"item", begun}}));
                events.push_back(event(
                    "response.function_call_arguments.delta",
                    {{"item_id", items[i]["id"]}, {"output_index", i}, {"delta", items[i]["arguments"]}}));
                events.push_back(
                    event("response.function_call_arguments.done", {{"item_id", items[i]["id"]},
                                                                    {"output_index", i},
                                                                    {"arguments", items[i]["arguments"]}}));
            }
            events.push_back(event("response.output_item.done", {{"output_index", i}, {"item", items[i]}}));
        }
        return events;
    }
    Events finish(const std::vector<TurnOutcome>& choices) override {
        const Json response = whole(choices);
        return {event(response["status"] == "completed" ? "response.completed" : "response.incomplete",
                      {{"response", response}})};
    }
    Events error(const Json& body) override {
        Json response = head("failed");
        response["error"] = {{"code", "server_error"}, {"message", body["error"]["message"]}};
        return {event("response.failed", {{"response", response}})};
    }

  private:
    std::string event(const std::string& type, Json data) {
        data["type"] = type;
        data["sequence_number"] = sequence_++;
        return fmt::format("event: {}\ndata: {}\n\n", type, json_text(data));
    }
    Json head(const char* status) const {
        return {{"id", id_},
                {"object", "response"},
                {"created_at", created_},
                {"status", status},
                {"model", model_},
                {"output", Json::array()},
                {"error", nullptr},
                {"incomplete_details", nullptr},
                {"instructions", nullptr},
                {"metadata", Json::object()},
                {"parallel_tool_calls", false},
                {"tool_choice", "auto"},
                {"tools", Json::array()},
                {"temperature", nullptr},
                {"top_p", nullptr},
                {"usage", nullptr}};
    }
    std::string reasoning_id() const { return "rs_" + id_.substr(5); }
    std::string message_id() const { return "msg_" + id_.substr(5); }
    int message_index() const { return thinking_begun_ ? 1 : 0; }
    Json place() const {
        return {{"item_id", message_id()},
                {"output_index", message_index()},
                {"content_index", 0},
                {"logprobs", Json::array()}};
    }
    static Json text_part(const std::string& text) {
        return {{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}};
    }
    Json part(const std::string& text) const {
        Json json = place();
        json.erase("logprobs");
        json["part"] = text_part(text);
        return json;
    }
    Json reasoning_item(const std::string& text, const char* status) const {
        Json content = Json::array();
        if (!text.empty()) {
            content.push_back({{"type", "reasoning_text"}, {"text", text}});
        }
        return {{"type", "reasoning"},
                {"id", reasoning_id()},
                {"summary", Json::array()},
                {"content", std::move(content)},
                {"status", status}};
    }
    Json message_item(const std::string& text, const char* status) const {
        Json content = Json::array();
        if (!text.empty()) {
            content.push_back(text_part(text));
        }
        return {{"type", "message"},
                {"id", message_id()},
                {"role", "assistant"},
                {"status", status},
                {"content", std::move(content)}};
    }
    Json items_of(const TurnOutcome& outcome) const {
        Json items = Json::array();
        if (!outcome.turn.thinking.empty()) {
            items.push_back(reasoning_item(outcome.turn.thinking, "completed"));
        }
        if (!outcome.turn.answer.empty()) {
            items.push_back(message_item(outcome.turn.answer, "completed"));
        }
        for (const ToolCall& call : outcome.tool_calls) {
            items.push_back({{"type", "function_call"},
                             {"id", "fc_" + call.id},
                             {"call_id", call.id},
                             {"name", call.name},
                             {"arguments", call.arguments},
                             {"status", "completed"}});
        }
        return items;
    }

    std::string id_;
    std::string model_;
    int64_t created_;
    size_t sequence_ = 0;
    bool thinking_begun_ = false;
    bool answer_begun_ = false;
};

} // namespace

std::string new_response_id() {
    std::random_device random;
    return fmt::format("resp_{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

CompletionRequest parse_response_request(const Json& body, const std::string& id,
                                         const EngineOptions& defaults) {
    if (!body.is_object()) {
        bad_request("the body is not a JSON object");
    }
    CompletionRequest request = parse_chat_request(chat_body_of(body), defaults);
    request.task.choices = 1;
    request.task.becomes = key_of(id);
    const Json previous = body.value("previous_response_id", Json());
    if (previous.is_string()) {
        request.task.continues = key_of(previous.get<std::string>());
        request.task.must_exist = true;
    }
    return request;
}

std::unique_ptr<ReplyWriter> response_writer(const std::string& id, const std::string& model) {
    return std::make_unique<ResponseWriter>(id, model);
}

} // namespace spool
