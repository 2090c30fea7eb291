#include "server/openai.h"

#include <chrono>
#include <limits>
#include <utility>

#include "server/api_error.h"

namespace spool {

namespace {

/// body[name] as T, or `otherwise` if it is absent or null. Throws ApiError 400 for another type.
template <typename T>
T get(const Json& body, const char* name, T otherwise) {
    const auto found = body.find(name);
    if (found == body.end() || found->is_null()) {
        return otherwise;
    }
    const bool fits = std::is_same_v<T, bool>          ? found->is_boolean()
                      : std::is_same_v<T, std::string> ? found->is_string()
                      : std::is_integral_v<T>          ? found->is_number_integer()
                                                       : found->is_number();
    if (!fits) {
        bad_request(fmt::format("\"{}\": {} is not {}", name, found->dump(),
                                std::is_same_v<T, bool>          ? "true or false"
                                : std::is_same_v<T, std::string> ? "a string"
                                : std::is_integral_v<T>          ? "a whole number"
                                                                 : "a number"));
    }
    return found->get<T>();
}

/// A count that must be at least `least`.
size_t get_count(const Json& body, const char* name, size_t otherwise, int64_t least, int64_t most) {
    const auto value = get<int64_t>(body, name, static_cast<int64_t>(otherwise));
    if (value < least || value > most) {
        bad_request(fmt::format("\"{}\": {} is not from {} to {}", name, value, least, most));
    }
    return static_cast<size_t>(value);
}

/// Text, or an array of parts of type text.
std::string content_of(const Json& message, size_t index) {
    const Json content = message.value("content", Json());
    if (content.is_null()) {
        return "";
    }
    if (content.is_string()) {
        return content.get<std::string>();
    }
    std::string text;
    if (content.is_array()) {
        for (const Json& part : content) {
            const std::string type = part.is_object() ? part.value("type", "") : "";
            if ((type != "text" && type != "input_text" && type != "output_text") ||
                !part.value("text", Json()).is_string()) {
                bad_request(fmt::format(
                    "messages[{}].content: a part of type \"{}\"; only text is understood", index, type));
            }
            text += part["text"].get<std::string>();
        }
        return text;
    }
    bad_request(fmt::format("messages[{}].content: expected a string or an array of parts", index));
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

ChatMessage message_of(const Json& json, size_t index) {
    if (!json.is_object() || !json.value("role", Json()).is_string()) {
        bad_request(fmt::format("messages[{}]: expected an object with a \"role\"", index));
    }
    ChatMessage message{json["role"].get<std::string>(), content_of(json, index)};
    const std::string& role = message.role;
    if (role != "system" && role != "developer" && role != "user" && role != "assistant" && role != "tool") {
        bad_request(fmt::format("messages[{}].role: \"{}\" is not system, developer, user, assistant or tool",
                                index, role));
    }
    message.tool_call_id = get<std::string>(json, "tool_call_id", "");
    const Json calls = json.value("tool_calls", Json());
    for (const Json& call : calls.is_array() ? calls : Json::array()) {
        const Json function = call.value("function", Json::object());
        message.tool_calls.push_back({text_of(call.value("id", Json(""))),
                                      text_of(function.value("name", Json(""))),
                                      text_of(function.value("arguments", Json("{}")))});
    }
    return message;
}

ToolUse tools_of(const Json& body) {
    ToolUse use;
    const Json tools = body.value("tools", Json());
    for (size_t i = 0; tools.is_array() && i < tools.size(); ++i) {
        const Json function = tools[i].is_object() ? tools[i].value("function", Json()) : Json();
        if (!function.is_object() || !function.value("name", Json()).is_string()) {
            bad_request(
                fmt::format(R"(tools[{}]: expected {{"type": "function", "function": {{"name": ...}}}})", i));
        }
        use.tools.push_back({function["name"].get<std::string>(),
                             text_of(function.value("description", Json(""))),
                             function.value("parameters", Json({{"type", "object"}})).dump()});
    }
    const Json choice = body.value("tool_choice", Json("auto"));
    if (choice.is_object()) { // one named tool: required, and only that one is there
        const std::string name = text_of(choice.value("function", Json::object()).value("name", Json("")));
        std::erase_if(use.tools, [&](const ChatTool& tool) { return tool.name != name; });
        if (use.tools.empty()) {
            bad_request(fmt::format("tool_choice: there is no tool \"{}\"", name));
        }
        use.choice = "required";
    } else {
        use.choice = text_of(choice);
        if (use.choice != "auto" && use.choice != "none" && use.choice != "required") {
            bad_request(fmt::format("tool_choice: \"{}\" is not auto, none, required or a tool", use.choice));
        }
    }
    use.parallel = get(body, "parallel_tool_calls", false);
    return use;
}

std::string grammar_of(const Json& body) {
    const Json format = body.value("response_format", Json());
    const std::string type = format.is_object() ? format.value("type", "text") : "text";
    Json schema;
    if (type == "json_schema") {
        schema = format.value("json_schema", Json::object()).value("schema", format.value("schema", Json()));
        if (!schema.is_object()) {
            bad_request("response_format: json_schema without a \"schema\"");
        }
    } else if (type == "json_object") {
        schema = format.value("schema", Json({{"type", "object"}}));
    } else if (type != "text") {
        bad_request(
            fmt::format("response_format: type \"{}\" is not text, json_object or json_schema", type));
    }
    if (body.contains("json_schema") && body["json_schema"].is_object()) { // as llama-server has it
        schema = body["json_schema"];
    }
    try {
        return schema.is_object() ? grammar_of_json_schema(schema.dump())
                                  : get<std::string>(body, "grammar", "");
    } catch (const Error& error) {
        bad_request(error.what());
    }
}

/// What both routes have in common.
CompletionRequest common_of(const Json& body, const EngineOptions& defaults, const char* limit) {
    if (!body.is_object()) {
        bad_request("the body is not a JSON object");
    }
    CompletionRequest request;
    TurnTask& task = request.task;
    task.sampler = defaults.sampler;
    SamplerOptions& s = task.sampler;
    s.temperature = get(body, "temperature", s.temperature);
    s.top_p = get(body, "top_p", s.top_p);
    s.top_k = get(body, "top_k", s.top_k);
    s.min_p = get(body, "min_p", s.min_p);
    s.frequency_penalty = get(body, "frequency_penalty", s.frequency_penalty);
    s.presence_penalty = get(body, "presence_penalty", s.presence_penalty);
    s.repeat_penalty = get(body, "repeat_penalty", s.repeat_penalty);
    s.penalty_last_n = get(body, "repeat_last_n", s.penalty_last_n);
    s.dry_multiplier = get(body, "dry_multiplier", s.dry_multiplier);
    s.seed = static_cast<uint32_t>(get<int64_t>(body, "seed", s.seed));
    s.ignore_end = get(body, "ignore_eos", s.ignore_end);

    task.rules = defaults.rules;
    for (const char* name : {"max_tokens", limit}) {
        if (get<int64_t>(body, name, -1) != -1) { // -1, as llama-server has it: no limit but the server's
            task.rules.max_tokens = std::min(
                defaults.rules.max_tokens, get_count(body, name, 1, 1, std::numeric_limits<int64_t>::max()));
        }
    }
    const Json stop = body.value("stop", Json());
    if (stop.is_string()) {
        task.rules.stop = {stop.get<std::string>()};
    } else if (stop.is_array()) {
        for (const Json& text : stop) {
            if (!text.is_string()) {
                bad_request("stop: expected a string or an array of strings");
            }
            task.rules.stop.push_back(text.get<std::string>());
        }
    } else if (!stop.is_null()) {
        bad_request("stop: expected a string or an array of strings");
    }
    task.choices = get_count(body, "n", 1, 1, 16);
    task.answer_grammar = grammar_of(body);
    if (const auto session = get<std::string>(body, "session_id", ""); !session.empty()) {
        task.continues = task.becomes = fmt::format("session \"{}\"", session);
    }
    request.stream = get(body, "stream", false);
    const Json stream_options = body.value("stream_options", Json());
    request.stream_usage = stream_options.is_object() && stream_options.value("include_usage", false);
    request.model = get<std::string>(body, "model", "");
    return request;
}

std::string_view finish_reason(const TurnOutcome& outcome) {
    if (!outcome.tool_calls.empty()) {
        return "tool_calls";
    }
    switch (outcome.turn.reason) {
    case StopReason::end_token:
    case StopReason::stop_string:
        return "stop";
    default:
        return "length";
    }
}

Json calls_of(const TurnOutcome& outcome, bool indexed) {
    Json calls = Json::array();
    for (const ToolCall& call : outcome.tool_calls) {
        Json json = {{"id", call.id},
                     {"type", "function"},
                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
        if (indexed) {
            json["index"] = calls.size();
        }
        calls.push_back(std::move(json));
    }
    return calls;
}

Json bytes_of(const std::string& text) {
    Json bytes = Json::array();
    for (const char c : text) {
        bytes.push_back(static_cast<unsigned char>(c));
    }
    return bytes;
}

Json logprobs_of(const TurnOutcome& outcome, const Tokenizer& tokenizer) {
    const auto entry = [&](Token token, float logprob) {
        const std::string piece = tokenizer.piece(token, true);
        return Json{{"token", piece}, {"logprob", logprob}, {"bytes", bytes_of(piece)}};
    };
    Json content = Json::array();
    for (const TokenLogprob& token : outcome.logprobs) {
        Json json = entry(token.token, token.logprob);
        json["top_logprobs"] = Json::array();
        for (const auto& [other, logprob] : token.top) {
            json["top_logprobs"].push_back(entry(other, logprob));
        }
        content.push_back(std::move(json));
    }
    return {{"content", content}};
}

} // namespace

CompletionRequest parse_chat_request(const Json& body, const EngineOptions& defaults) {
    CompletionRequest request = common_of(body, defaults, "max_completion_tokens");
    const Json messages = body.value("messages", Json());
    if (!messages.is_array() || messages.empty()) {
        bad_request("messages: expected an array with at least one message");
    }
    for (size_t i = 0; i < messages.size(); ++i) {
        request.task.messages.push_back(message_of(messages[i], i));
    }
    if (request.task.messages.back().role == "assistant") {
        bad_request("messages: the last one is the assistant's; there is nothing to reply to");
    }
    request.task.tools = tools_of(body);
    if (get(body, "logprobs", false)) {
        request.task.top_logprobs = static_cast<int>(get_count(body, "top_logprobs", 0, 0, 20));
    }
    return request;
}

CompletionRequest parse_text_request(const Json& body, const EngineOptions& defaults) {
    CompletionRequest request = common_of(body, defaults, "n_predict");
    const Json prompt = body.value("prompt", Json());
    const Json text = prompt.is_array() && prompt.size() == 1 ? prompt[0] : prompt;
    if (!text.is_string() || text.get<std::string>().empty()) {
        bad_request("prompt: expected a text that is not empty (one at a time)");
    }
    request.task.raw_prompt = text.get<std::string>();
    const auto logprobs = get_count(body, "logprobs", 0, 0, 20);
    request.task.top_logprobs = logprobs > 0 ? static_cast<int>(logprobs) : -1;
    return request;
}

Json usage_of(const std::vector<TurnOutcome>& choices) {
    size_t completion = 0;
    size_t reasoning = 0;
    for (const TurnOutcome& choice : choices) {
        completion += choice.turn.tokens;
        reasoning += choice.reasoning_tokens;
    }
    const TurnOutcome& first = choices.front();
    return {{"prompt_tokens", first.prompt_tokens},
            {"completion_tokens", completion},
            {"total_tokens", first.prompt_tokens + completion},
            {"prompt_tokens_details", {{"cached_tokens", first.known_tokens}}},
            {"completion_tokens_details", {{"reasoning_tokens", reasoning}}},
            {"compressed_tokens", choices.back().compressed_tokens}};
}

int64_t seconds_since_epoch() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

namespace {

class CompletionWriter final : public ReplyWriter {
  public:
    CompletionWriter(bool text, std::string id, std::string model, bool with_usage,
                     const Tokenizer& tokenizer)
        : text_(text), id_(std::move(id)), model_(std::move(model)), with_usage_(with_usage),
          tokenizer_(tokenizer), created_(seconds_since_epoch()) {}

    Json whole(const std::vector<TurnOutcome>& choices) override {
        Json json = head(text_ ? "text_completion" : "chat.completion");
        for (size_t i = 0; i < choices.size(); ++i) {
            json["choices"].push_back(choice_of(i, choices[i]));
        }
        json["usage"] = usage_of(choices);
        return json;
    }
    Events begin(size_t choice) override {
        return text_ ? Events{} : Events{piece(choice, {{"role", "assistant"}, {"content", nullptr}})};
    }
    Events thinking(size_t choice, std::string_view text) override {
        return text_ ? Events{} : Events{piece(choice, {{"reasoning_content", text}})};
    }
    Events answer(size_t choice, std::string_view text) override {
        return {piece(choice, {{"content", text}})};
    }
    Events end(size_t choice, const TurnOutcome& outcome) override {
        Events events;
        if (!outcome.tool_calls.empty()) {
            events.push_back(piece(choice, {{"tool_calls", calls_of(outcome, true)}}));
        }
        events.push_back(piece(choice, Json::object(), &outcome));
        return events;
    }
    Events finish(const std::vector<TurnOutcome>& choices) override {
        Events events;
        if (with_usage_) {
            Json json = head(piece_object());
            json["usage"] = usage_of(choices);
            events.push_back(event(json));
        }
        events.emplace_back("data: [DONE]\n\n");
        return events;
    }
    Events error(const Json& body) override { return {event(body), "data: [DONE]\n\n"}; }

  private:
    static std::string event(const Json& json) { return fmt::format("data: {}\n\n", json_text(json)); }
    const char* piece_object() const { return text_ ? "text_completion" : "chat.completion.chunk"; }

    Json head(const char* object) const {
        return {{"id", id_},
                {"object", object},
                {"created", created_},
                {"model", model_},
                {"choices", Json::array()}};
    }

    /// `ended`: this is the choice's last piece.
    std::string piece(size_t choice, const Json& delta, const TurnOutcome* ended = nullptr) const {
        Json one = {{"index", choice}, {"finish_reason", nullptr}, {"logprobs", nullptr}};
        if (text_) {
            one["text"] = delta.value("content", "");
        } else {
            one["delta"] = delta;
        }
        if (ended != nullptr) {
            one["finish_reason"] = finish_reason(*ended);
            if (!ended->logprobs.empty()) {
                one["logprobs"] = logprobs_of(*ended, tokenizer_);
            }
        }
        Json json = head(piece_object());
        json["choices"].push_back(std::move(one));
        return event(json);
    }

    Json choice_of(size_t choice, const TurnOutcome& outcome) const {
        Json json = {{"index", choice}, {"finish_reason", finish_reason(outcome)}, {"logprobs", nullptr}};
        if (!outcome.logprobs.empty()) {
            json["logprobs"] = logprobs_of(outcome, tokenizer_);
        }
        if (text_) {
            json["text"] = outcome.turn.answer;
            return json;
        }
        json["message"] = {{"role", "assistant"}, {"content", outcome.turn.answer}};
        if (!outcome.turn.thinking.empty()) {
            json["message"]["reasoning_content"] = outcome.turn.thinking;
        }
        if (!outcome.tool_calls.empty()) {
            json["message"]["tool_calls"] = calls_of(outcome, false);
            if (outcome.turn.answer.empty()) {
                json["message"]["content"] = nullptr;
            }
        }
        return json;
    }

    bool text_;
    std::string id_;
    std::string model_;
    bool with_usage_;
    const Tokenizer& tokenizer_;
    int64_t created_;
};

} // namespace

std::unique_ptr<ReplyWriter> completion_writer(bool text, const std::string& id, const std::string& model,
                                               bool with_usage, const Tokenizer& tokenizer) {
    return std::make_unique<CompletionWriter>(text, id, model, with_usage, tokenizer);
}

} // namespace spool
