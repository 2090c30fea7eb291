#include "corpus/shapes.h"

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace spool {

namespace {

constexpr std::string_view thought_start = "<|begin_of_thought|>";
constexpr std::string_view thought_end = "<|end_of_thought|>";
constexpr std::string_view solution_start = "<|begin_of_solution|>";
constexpr std::string_view solution_end = "<|end_of_solution|>";
constexpr std::string_view think_start = "<think>";
constexpr std::string_view think_end = "</think>";

constexpr std::initializer_list<const char*> prompt_fields = {"prompt", "problem", "question", "instruction"};
constexpr std::initializer_list<const char*> think_fields = {"think", "reasoning", "reasoning_content"};
constexpr std::initializer_list<const char*> answer_fields = {"answer", "response", "output"};

std::string_view strip(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

void drop_prefix(std::string_view& text, std::string_view prefix) {
    if (text.starts_with(prefix)) {
        text = strip(text.substr(prefix.size()));
    }
}

void drop_suffix(std::string_view& text, std::string_view suffix) {
    if (text.ends_with(suffix)) {
        text = strip(text.substr(0, text.size() - suffix.size()));
    }
}

/// The first of `names` that holds text, without space around it; "" if none does.
std::string first_text(const Json& object, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        const auto found = object.find(name);
        if (found != object.end() && found->is_string()) {
            const auto text = strip(found->get_ref<const std::string&>());
            if (!text.empty()) {
                return std::string(text);
            }
        }
    }
    return "";
}

std::string plain_think(const Json& object) {
    const std::string text = first_text(object, think_fields);
    std::string_view think = text;
    drop_prefix(think, think_start);
    drop_suffix(think, think_end);
    return std::string(think);
}

const Json* find_array(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_array() && !found->empty() ? &*found : nullptr;
}

/// "user", "assistant" or "system"; "" for anything else.
std::string role_of(const std::string& name) {
    if (name == "user" || name == "human") {
        return "user";
    }
    if (name == "assistant" || name == "gpt" || name == "model") {
        return "assistant";
    }
    return name == "system" ? name : "";
}

struct Conversation {
    std::vector<Message> messages;
    std::string last_think; ///< a reasoning field of the last message
};

/// What is wrong with it as the error; nullopt with an empty error if the record has no conversation.
std::optional<Conversation> read_conversation(const Json& record, std::string& error) {
    const Json* list = find_array(record, "messages");
    list = list != nullptr ? list : find_array(record, "conversations");
    if (list == nullptr) {
        return std::nullopt;
    }
    Conversation conversation;
    const std::string system = first_text(record, {"system"});
    if (!system.empty()) {
        conversation.messages.push_back({"system", system});
    }
    for (const Json& item : *list) {
        const std::string role = item.is_object() ? role_of(first_text(item, {"role", "from"})) : "";
        if (role.empty()) {
            error = "a message whose role is not system, user or assistant";
            return std::nullopt;
        }
        std::string content = first_text(item, {"content", "value"});
        conversation.last_think = plain_think(item);
        if (role == "system" && !conversation.messages.empty() &&
            conversation.messages.front().role == "system") {
            continue; // it stands beside the messages too
        }
        conversation.messages.push_back({role, std::move(content)});
    }
    std::erase_if(conversation.messages, [](const Message& message) {
        return message.role == "system" && message.content.find(thought_start) != std::string::npos;
    });
    return conversation;
}

bool has_user(const std::vector<Message>& messages) {
    for (const Message& message : messages) {
        if (message.role == "user") {
            return !message.content.empty();
        }
    }
    return false;
}

void finish(Trace trace, ShapeResult& result) {
    if (!has_user(trace.messages)) {
        result.rejected.push_back({"no_prompt", "there is no question of a user"});
    } else if (trace.messages.back().role != "user") {
        result.rejected.push_back({"bad_messages", "the reply does not follow a message of the user"});
    } else if (trace.think.empty() && trace.answer.empty()) {
        result.rejected.push_back({"no_reply", "there is neither thinking nor an answer"});
    } else {
        result.traces.push_back(std::move(trace));
    }
}

/// record[name][index] if it is true or false; nullopt if there is nothing there.
std::optional<bool> flag(const Json& record, const char* name, size_t index) {
    const Json* list = find_array(record, name);
    if (list == nullptr || index >= list->size() || !(*list)[index].is_boolean()) {
        return std::nullopt;
    }
    return (*list)[index].get<bool>();
}

std::optional<Rejection> check_generation(const Json& record, size_t index) {
    if (!flag(record, "is_reasoning_complete", index).value_or(true)) {
        return Rejection{"incomplete", fmt::format("generation {} is not complete", index)};
    }
    const auto verified = flag(record, "correctness_math_verify", index);
    const auto judged = flag(record, "correctness_llama", index);
    if ((verified || judged) && !verified.value_or(false) && !judged.value_or(false)) {
        return Rejection{"incorrect", fmt::format("generation {} has a wrong answer", index)};
    }
    return std::nullopt;
}

void read_generations(const Json& record, const std::vector<Message>& messages, ShapeResult& result) {
    const Json& generations = record["generations"];
    for (size_t i = 0; i < generations.size(); ++i) {
        if (auto rejection = check_generation(record, i)) {
            result.rejected.push_back(std::move(*rejection));
            continue;
        }
        if (!generations[i].is_string()) {
            result.rejected.push_back({"no_reply", fmt::format("generation {} is not text", i)});
            continue;
        }
        Trace trace{messages, "", ""};
        auto rejected = read_reply(generations[i].get_ref<const std::string&>(), trace);
        if (rejected.empty()) {
            finish(std::move(trace), result);
        } else {
            std::ranges::move(rejected, std::back_inserter(result.rejected));
        }
    }
}

} // namespace

std::vector<Rejection> read_reply(std::string_view reply, Trace& trace) {
    std::string_view text = strip(reply);
    std::string_view start = think_start;
    std::string_view end = think_end;
    if (text.starts_with(thought_start)) {
        start = thought_start;
        end = thought_end;
    }
    const size_t close = text.find(end);
    if (close == std::string_view::npos) {
        if (text.starts_with(start)) {
            return {{"unfinished_think", fmt::format("the thinking has no {}", end)}};
        }
        trace.answer = text;
        return {};
    }
    std::string_view think = strip(text.substr(0, close));
    drop_prefix(think, start);
    std::string_view answer = strip(text.substr(close + end.size()));
    drop_prefix(answer, solution_start);
    drop_suffix(answer, solution_end);
    trace.think = think;
    trace.answer = answer;
    return {};
}

ShapeResult traces_of(const Json& record) {
    ShapeResult result;
    if (!record.is_object()) {
        result.rejected.push_back(
            {"not_an_object", "expected an object, found " + std::string(record.type_name())});
        return result;
    }
    std::string error;
    auto conversation = read_conversation(record, error);
    if (!error.empty()) {
        result.rejected.push_back({"bad_messages", error});
        return result;
    }
    std::vector<Message> messages;
    const std::string prompt = first_text(record, prompt_fields);
    std::string reply;
    if (conversation) {
        messages = std::move(conversation->messages);
        if (!messages.empty() && messages.back().role == "assistant") {
            reply = std::move(messages.back().content);
            messages.pop_back();
        }
    } else if (!prompt.empty()) {
        const std::string system = first_text(record, {"system"});
        if (!system.empty()) {
            messages.push_back({"system", system});
        }
        messages.push_back({"user", prompt});
    }
    if (find_array(record, "generations") != nullptr) {
        read_generations(record, messages, result);
        return result;
    }
    Trace trace{std::move(messages), "", ""};
    if (reply.empty()) {
        reply = first_text(record, answer_fields);
    }
    result.rejected = read_reply(reply, trace);
    if (!result.rejected.empty()) {
        return result;
    }
    if (trace.think.empty()) {
        trace.think = conversation && !conversation->last_think.empty() ? conversation->last_think
                                                                        : plain_think(record);
    }
    finish(std::move(trace), result);
    return result;
}

} // namespace spool
