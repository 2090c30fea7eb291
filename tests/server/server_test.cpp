// The server as its clients see it, on a small model of random weights.
#include <algorithm>
#include <atomic>
#include <cpp-httplib/httplib.h>
#include <functional>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "server/server.h"
#include "support/scripted.h"
#include "support/small_model.h"

namespace spool {
namespace {

/// A running server.
class Running {
  public:
    using Change = std::function<void(EngineOptions&)>;

    Running(const Model& model, uint32_t parallel, const std::filesystem::path& sessions = {},
            const ServerOptions& server = {}, const Change& change = {})
        : engine_(model, nullptr, options(parallel, sessions, change)), server_(engine_, any_port(server)),
          thread_([this] { server_.run(); }) {}
    ~Running() {
        server_.stop();
        thread_.join();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    httplib::Client client() const {
        httplib::Client client("127.0.0.1", server_.port());
        client.set_read_timeout(60);
        return client;
    }
    Engine& engine() { return engine_; }

  private:
    static EngineOptions options(uint32_t parallel, const std::filesystem::path& sessions,
                                 const Change& change) {
        EngineOptions options;
        options.pool.sessions = parallel;
        options.pool.threads = 1;
        options.pool.memory.strategy = StrategyKind::window;
        options.pool.memory.window = 64;
        options.pool.memory.chunk = 32;
        options.sampler.temperature = 1;
        options.sampler.ignore_end = true;
        options.rules.max_tokens = 500;
        options.store.folder = sessions;
        if (change) {
            change(options);
        }
        return options;
    }
    static ServerOptions any_port(ServerOptions options) {
        options.port = 0;
        options.model_name = "small";
        return options;
    }

    Engine engine_;
    Server server_;
    std::thread thread_;
};

Json message(const std::string& role, const std::string& content) {
    return {{"role", role}, {"content", content}};
}

class ServerTest : public test::WithSmallModel {
  protected:
    static Json chat_body(const Json& messages, size_t tokens = 8) {
        return {{"messages", messages}, {"max_tokens", tokens}, {"seed", 7}};
    }
    static Json post(const Running& server, const std::string& path, const Json& body, int expected = 200,
                     const httplib::Headers& headers = {}) {
        auto client = server.client();
        const auto response = client.Post(path, headers, body.dump(), "application/json");
        if (!response) {
            ADD_FAILURE() << "no answer: " << httplib::to_string(response.error());
            return {};
        }
        EXPECT_EQ(response->status, expected) << response->body;
        return Json::parse(response->body, nullptr, false);
    }
    static Json chat(const Running& server, const Json& body, int expected = 200) {
        return post(server, "/v1/chat/completions", body, expected);
    }
    /// Appends the reply to `messages`, as a client does.
    static void answer(Json& messages, const Json& reply) {
        messages.push_back(
            message("assistant", reply["choices"][0]["message"]["content"].get<std::string>()));
    }
    static size_t cached(const Json& reply) {
        return reply["usage"]["prompt_tokens_details"]["cached_tokens"].get<size_t>();
    }
};

TEST_F(ServerTest, AReplyHasOpenAIsShape) {
    const Running server(*model_, 1);
    const Json reply = chat(server, chat_body(Json::array({message("user", "Hello")})));
    EXPECT_EQ(reply["object"], "chat.completion");
    EXPECT_EQ(reply["model"], "small");
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(reply["choices"][0]["message"]["role"], "assistant");
    EXPECT_FALSE(reply["choices"][0]["message"]["content"].get<std::string>().empty());
    EXPECT_EQ(reply["usage"]["completion_tokens"], 8);
    EXPECT_EQ(reply["usage"]["total_tokens"], reply["usage"]["prompt_tokens"].get<int>() + 8);
    const Json text = post(server, "/v1/completions", {{"prompt", "Once"}, {"max_tokens", 5}});
    EXPECT_EQ(text["object"], "text_completion");
    EXPECT_FALSE(text["choices"][0]["text"].get<std::string>().empty());
}

TEST_F(ServerTest, ARequestWithItsWholeHistoryReadsOnlyWhatIsNew) {
    const Running server(*model_, 2);
    Json messages = Json::array({message("system", "Be brief."), message("user", "Hello")});
    size_t known = 0;
    for (int turn = 0; turn < 12; ++turn) {
        const Json reply = chat(server, chat_body(messages));
        EXPECT_EQ(cached(reply), known) << "turn " << turn;
        const auto read = reply["usage"]["prompt_tokens"].get<size_t>() - cached(reply);
        EXPECT_LT(read, 80U) << "turn " << turn;
        known = reply["usage"]["total_tokens"].get<size_t>();
        answer(messages, reply);
        messages.push_back(message("user", "And then?"));
    }
    // Another history is another conversation.
    messages[1] = message("user", "Good day");
    EXPECT_EQ(cached(chat(server, chat_body(messages))), 0U);
}

TEST_F(ServerTest, ASessionTakesNewMessagesOnlyAndOutlivesTheServer) {
    const auto folder = folder_ / "sessions";
    size_t known = 0;
    {
        const Running server(*model_, 1, folder);
        Json body = chat_body(Json::array({message("user", "Hello")}));
        body["session_id"] = "mine";
        known = chat(server, body)["usage"]["total_tokens"].get<size_t>();
        Json other = body;
        other["session_id"] = "theirs"; // takes the only session's place
        EXPECT_EQ(cached(chat(server, other)), 0U);
        body["messages"] = Json::array({message("user", "And then?")});
        const Json second = chat(server, body);
        EXPECT_EQ(cached(second), known);
        known = second["usage"]["total_tokens"].get<size_t>();
    }
    const Running again(*model_, 1, folder);
    Json body = chat_body(Json::array({message("user", "Who are you?")}));
    body["session_id"] = "mine";
    EXPECT_EQ(cached(chat(again, body)), known);
}

TEST_F(ServerTest, AStreamsPiecesAreTheWholeReply) {
    const Running server(*model_, 1);
    Json body = chat_body(Json::array({message("user", "Hello")}), 30);
    const Json whole = chat(server, body);
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    auto client = server.client();
    const auto response = client.Post("/v1/chat/completions", body.dump(), "application/json");
    ASSERT_TRUE(response);
    EXPECT_EQ(response->get_header_value("Content-Type"), "text/event-stream");
    std::string content;
    Json last;
    bool done = false;
    for (size_t at = 0; at < response->body.size();) {
        const size_t end = response->body.find("\n\n", at);
        const std::string data = response->body.substr(at + 6, end - at - 6);
        at = end + 2;
        done = data == "[DONE]";
        if (!done) {
            last = Json::parse(data);
            if (!last["choices"].empty() &&
                last["choices"][0]["delta"].value("content", Json()).is_string()) {
                content += last["choices"][0]["delta"]["content"].get<std::string>();
            }
        }
    }
    EXPECT_TRUE(done);
    EXPECT_EQ(last["usage"], whole["usage"]);
    EXPECT_EQ(content, whole["choices"][0]["message"]["content"].get<std::string>());
}

TEST_F(ServerTest, AFullServerSaysWhenToComeBack) {
    const Running server(*model_, 1);
    std::atomic<bool> begun = false;
    std::atomic<bool> enough = false;
    std::thread busy([&] {
        auto client = server.client();
        Json body = chat_body(Json::array({message("user", "Hello")}), 500);
        body["stream"] = true;
        client.Post("/v1/chat/completions", {}, body.dump(), "application/json", [&](const char*, size_t) {
            begun = true;
            return !enough.load();
        });
    });
    while (!begun) {
        std::this_thread::yield();
    }
    auto client = server.client();
    const std::string body = chat_body(Json::array({message("user", "Me too")})).dump();
    const auto refused = client.Post("/v1/chat/completions", body, "application/json");
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 503);
    EXPECT_FALSE(refused->get_header_value("Retry-After").empty());
    // The first client leaves: its session is free soon after.
    enough = true;
    busy.join();
    int status = 503;
    for (int i = 0; i < 100 && status == 503; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const auto later = client.Post("/v1/chat/completions", body, "application/json");
        ASSERT_TRUE(later);
        status = later->status;
    }
    EXPECT_EQ(status, 200);
}

TEST_F(ServerTest, ASessionThatIsRepliedToIsNotForked) {
    const Running server(*model_, 2);
    std::atomic<bool> begun = false;
    std::atomic<bool> enough = false;
    Json body = chat_body(Json::array({message("user", "Hello")}), 500);
    body["session_id"] = "mine";
    std::thread busy([&] {
        auto client = server.client();
        Json streamed = body;
        streamed["stream"] = true;
        client.Post("/v1/chat/completions", {}, streamed.dump(), "application/json",
                    [&](const char*, size_t) {
                        begun = true;
                        return !enough.load();
                    });
    });
    while (!begun) {
        std::this_thread::yield();
    }
    const Json refused = chat(server, body, 503);
    EXPECT_NE(refused["error"]["message"].get<std::string>().find("mine"), std::string::npos) << refused;
    enough = true;
    busy.join();
}

TEST_F(ServerTest, AClientThatLeavesChangesNothing) {
    Running server(*model_, 1);
    Json messages = Json::array({message("user", "Hello")});
    const Json first = chat(server, chat_body(messages));
    const auto known = first["usage"]["total_tokens"].get<size_t>();
    answer(messages, first);
    messages.push_back(message("user", "And then?"));
    Json body = chat_body(messages, 500);
    body["stream"] = true;
    auto client = server.client();
    client.Post("/v1/chat/completions", {}, body.dump(), "application/json",
                [&](const char*, size_t) { return false; });
    while (server.engine().store().busy() > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(cached(chat(server, chat_body(messages))), known);
}

TEST_F(ServerTest, SeveralClientsAtOnceEachGetTheirOwnReplies) {
    const Running server(*model_, 4);
    std::vector<std::thread> clients;
    clients.reserve(4);
    for (int i = 0; i < 4; ++i) {
        clients.emplace_back([&, i] {
            Json messages = Json::array({message("user", "I am number " + std::to_string(i))});
            size_t known = 0;
            for (int turn = 0; turn < 4; ++turn) {
                const Json reply = chat(server, chat_body(messages, 20 + static_cast<size_t>(i)));
                EXPECT_EQ(cached(reply), known);
                known = reply["usage"]["total_tokens"].get<size_t>();
                answer(messages, reply);
                messages.push_back(message("user", "Go on"));
            }
        });
    }
    for (auto& client : clients) {
        client.join();
    }
}

TEST_F(ServerTest, APromptLongerThanAnyContextIsRead) {
    const Running server(*model_, 1);
    std::string text;
    while (text.size() < 30'000) {
        text += "All work and no play. ";
    }
    const Json reply = chat(server, chat_body(Json::array({message("user", text)})));
    EXPECT_GT(reply["usage"]["prompt_tokens"], model_->facts().trained_context);
    EXPECT_GT(reply["usage"]["compressed_tokens"], model_->facts().trained_context);
}

TEST_F(ServerTest, ChoicesStopsAndProbabilities) {
    const Running server(*model_, 1);
    Json body = chat_body(Json::array({message("user", "Hello")}));
    body["n"] = 3;
    body["logprobs"] = true;
    body["top_logprobs"] = 4;
    const Json reply = chat(server, body);
    ASSERT_EQ(reply["choices"].size(), 3U);
    std::set<std::string> contents;
    for (const Json& choice : reply["choices"]) {
        contents.insert(choice["message"]["content"].get<std::string>());
        ASSERT_EQ(choice["logprobs"]["content"].size(), 8U);
        for (const Json& token : choice["logprobs"]["content"]) {
            EXPECT_LE(token["logprob"], 0);
            ASSERT_EQ(token["top_logprobs"].size(), 4U);
            EXPECT_GE(token["top_logprobs"][0]["logprob"], token["top_logprobs"][3]["logprob"]);
        }
    }
    EXPECT_EQ(contents.size(), 3U) << "each choice is drawn anew";
    const auto content = reply["choices"][0]["message"]["content"].get<std::string>();
    Json stopped = chat_body(Json::array({message("user", "Hello")}));
    stopped["stop"] = content.substr(1, 2);
    if (Json(content.substr(1, 2)).dump(-1, ' ', false, Json::error_handler_t::ignore).size() == 4) {
        const Json short_reply = chat(server, stopped);
        EXPECT_EQ(short_reply["choices"][0]["finish_reason"], "stop");
    }
}

TEST_F(ServerTest, ASchemaBindsTheReply) {
    const Running server(*model_, 1);
    Json body = chat_body(Json::array({message("user", "Well?")}), 60);
    body["response_format"] = {{"type", "json_schema"},
                               {"json_schema",
                                {{"name", "answer"},
                                 {"schema",
                                  {{"type", "object"},
                                   {"properties", {{"answer", {{"enum", {"yes", "no"}}}}}},
                                   {"required", {"answer"}},
                                   {"additionalProperties", false}}}}}};
    body["ignore_eos"] = false;
    const Json reply = chat(server, body);
    const Json content = Json::parse(reply["choices"][0]["message"]["content"].get<std::string>());
    EXPECT_TRUE(content["answer"] == "yes" || content["answer"] == "no") << content;
}

/// As the Hermes and Qwen families write tools.
constexpr const char* template_with_tools = R"({%- if tools %}<|im_start|>system
Tools: <tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools><|im_end|>
{% endif %}{%- for message in messages %}{%- if message.role == "tool" %}<|im_start|>user
<tool_response>{{ message.content }}</tool_response><|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content or "" }}{%- if message.tool_calls %}{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{%- endfor %}{%- endif %}<|im_end|>
{% endif %}{%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %})";

/// Every reply is `text`.
std::function<void(EngineOptions&)> always(const std::string& text) {
    return [text](EngineOptions& options) {
        options.chooser = [text](const Tokenizer& tokenizer) {
            auto script = std::make_unique<test::Script>(tokenizer);
            script->add(text);
            return script;
        };
    };
}

TEST_F(ServerTest, AToolIsCalledAndItsAnswerRead) {
    const Running server(*model_, 1, {}, {}, [](EngineOptions& options) {
        options.chat_template = template_with_tools;
        always("I look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
               "\"Oslo\"}}\n</tool_call>")(options);
    });
    Json body = chat_body(Json::array({message("user", "Weather?")}), 200);
    body["tools"] = Json::array({{{"type", "function"},
                                  {"function",
                                   {{"name", "weather"},
                                    {"description", "of a city"},
                                    {"parameters",
                                     {{"type", "object"},
                                      {"properties", {{"city", {{"type", "string"}}}}},
                                      {"required", {"city"}}}}}}}});
    const Json reply = chat(server, body);
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "tool_calls") << reply;
    const Json call = reply["choices"][0]["message"]["tool_calls"][0];
    EXPECT_EQ(call["function"]["name"], "weather");
    EXPECT_FALSE(call["id"].get<std::string>().empty());
    EXPECT_EQ(Json::parse(call["function"]["arguments"].get<std::string>())["city"], "Oslo");
    // The tool's answer goes on from there; the end token was not read.
    Json messages = body["messages"];
    messages.push_back(reply["choices"][0]["message"]);
    messages.push_back({{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "rain"}});
    body["messages"] = messages;
    body["tool_choice"] = "none";
    EXPECT_EQ(cached(chat(server, body)), reply["usage"]["total_tokens"].get<size_t>() - 1);
    // Streamed, the call comes whole.
    body["messages"] = Json::array({message("user", "Weather?")});
    body["tool_choice"] = "auto";
    body["stream"] = true;
    auto client = server.client();
    const auto streamed = client.Post("/v1/chat/completions", body.dump(), "application/json");
    ASSERT_TRUE(streamed);
    EXPECT_NE(streamed->body.find("\"tool_calls\":[{"), std::string::npos) << streamed->body;
    EXPECT_NE(streamed->body.find("\"finish_reason\":\"tool_calls\""), std::string::npos);
    EXPECT_EQ(streamed->body.find("<tool_call>"), std::string::npos) << "not as text";
}

TEST_F(ServerTest, ThinkingIsApartAndClientsNeedNotSendItBack) {
    const Running server(*model_, 1, {}, {}, [](EngineOptions& options) {
        options.reasoning = {"<think>", "</think>"};
        always("Let me see.</think>\n\nFour.")(options);
    });
    Json messages = Json::array({message("user", "2+2?")});
    const Json reply = chat(server, chat_body(messages, 200));
    EXPECT_EQ(reply["choices"][0]["message"]["content"], "Four.") << reply;
    EXPECT_EQ(reply["choices"][0]["message"]["reasoning_content"], "Let me see.");
    EXPECT_GT(reply["usage"]["completion_tokens_details"]["reasoning_tokens"], 0);
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
    answer(messages, reply);
    messages.push_back(message("user", "And 3+3?"));
    EXPECT_EQ(cached(chat(server, chat_body(messages, 200))),
              reply["usage"]["total_tokens"].get<size_t>() - 1);
}

TEST_F(ServerTest, AReplyThatCannotStandIsToldAndLeavesNothing) {
    const Running server(*model_, 1, {}, {}, [](EngineOptions& options) {
        options.rules.retries = 1;
        always("")(options);
    });
    const Json body = chat_body(Json::array({message("user", "Hello")}), 50);
    const Json error = chat(server, body, 500);
    EXPECT_NE(error["error"]["message"].get<std::string>().find("2 attempts"), std::string::npos) << error;
    EXPECT_EQ(Json::parse(server.client().Get("/slots")->body)[0]["n_past"], 0);
}

TEST_F(ServerTest, ARefusedRequestDoesNotLoseItsConversation) {
    const Running server(*model_, 1);
    Json messages = Json::array({message("user", "Hello")});
    const Json first = chat(server, chat_body(messages));
    answer(messages, first);
    messages.push_back(message("user", "And then?"));
    Json wrong = chat_body(messages);
    wrong["grammar"] = "root ::= (";
    chat(server, wrong, 400);
    wrong = chat_body(messages);
    wrong["top_p"] = 7;
    chat(server, wrong, 400);
    EXPECT_EQ(cached(chat(server, chat_body(messages))), first["usage"]["total_tokens"].get<size_t>());
}

TEST_F(ServerTest, ResponsesAreContinuedByTheirIds) {
    const Running server(*model_, 2, folder_ / "sessions");
    const Json first =
        post(server, "/v1/responses", {{"input", "Hello"}, {"max_output_tokens", 8}, {"seed", 7}});
    EXPECT_EQ(first["object"], "response");
    EXPECT_EQ(first["status"], "incomplete") << "it ran into its limit";
    EXPECT_EQ(first["output"][0]["type"], "message");
    EXPECT_FALSE(first["output"][0]["content"][0]["text"].get<std::string>().empty());
    const Json more = {{"input", {{{"role", "user"}, {"content", "And then?"}}}},
                       {"max_output_tokens", 8},
                       {"previous_response_id", first["id"]}};
    for (int i = 0; i < 2; ++i) { // twice: an id can be continued again
        const Json second = post(server, "/v1/responses", more);
        EXPECT_EQ(second["usage"]["input_tokens_details"]["cached_tokens"], first["usage"]["total_tokens"]);
        EXPECT_NE(second["id"], first["id"]);
    }
    Json unknown = more;
    unknown["previous_response_id"] = "resp_0";
    for (int i = 0; i < 3; ++i) { // more of them than sessions: none pushes a conversation out
        post(server, "/v1/responses", unknown, 404);
    }
    EXPECT_EQ(post(server, "/v1/responses", more)["usage"]["input_tokens_details"]["cached_tokens"],
              first["usage"]["total_tokens"]);
    post(server, "/v1/responses", {{"input", 3}}, 400);
}

TEST_F(ServerTest, AResponsesEventsTellItsItems) {
    const Running server(*model_, 1, {}, {}, [](EngineOptions& options) {
        options.reasoning = {"<think>", "</think>"};
        always("Let me see.</think>\n\nFour.")(options);
    });
    auto client = server.client();
    const Json body = {{"input", "2+2?"}, {"stream", true}};
    const auto response = client.Post("/v1/responses", body.dump(), "application/json");
    ASSERT_TRUE(response);
    std::vector<std::string> types;
    std::string text;
    Json last;
    for (size_t at = response->body.find("data: "); at != std::string::npos;
         at = response->body.find("data: ", at)) {
        const size_t end = response->body.find("\n\n", at);
        last = Json::parse(response->body.substr(at + 6, end - at - 6));
        EXPECT_EQ(last["sequence_number"], types.size());
        types.push_back(last["type"].get<std::string>());
        text += types.back() == "response.output_text.delta" ? last["delta"].get<std::string>() : "";
        at = end;
    }
    EXPECT_EQ(types.front(), "response.created");
    EXPECT_EQ(types.back(), "response.completed");
    EXPECT_EQ(text, "Four.");
    EXPECT_EQ(last["response"]["output"][0]["type"], "reasoning");
    EXPECT_EQ(last["response"]["output"][1]["content"][0]["text"], "Four.");
}

TEST_F(ServerTest, WrongRequestsAreNamed) {
    ServerOptions options;
    options.max_body_bytes = 100'000;
    const Running server(*model_, 1, {}, options);
    const auto refused = [&](const Json& change, const std::string& word) {
        Json body = chat_body(Json::array({message("user", "Hello")}));
        body.update(change);
        const Json error = chat(server, body, 400);
        EXPECT_NE(error["error"]["message"].get<std::string>().find(word), std::string::npos) << error;
    };
    refused({{"messages", Json::array()}}, "messages");
    refused({{"messages", {{{"role", "king"}, {"content", "x"}}}}}, "king");
    refused({{"messages", {{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}}}}, "image_url");
    refused({{"temperature", "hot"}}, "temperature");
    refused({{"max_tokens", 0}}, "max_tokens");
    refused({{"n", 1000}}, "\"n\"");
    refused({{"stop", 3}}, "stop");
    refused({{"top_p", 7}}, "top-p");
    refused({{"response_format", {{"type", "xml"}}}}, "xml");
    refused({{"response_format", {{"type", 3}}}}, "type");
    refused({{"response_format", {{"type", "json_schema"}, {"json_schema", "x"}}}}, "type");
    refused({{"tools", {{{"type", "function"}, {"function", {{"name", 3}}}}}}}, "tools[0]");
    refused({{"grammar", "root ::= ("}}, "grammar");
    refused({{"tools", {{{"type", "function"}}}}}, "tools[0]");
    auto client = server.client();
    EXPECT_EQ(client.Post("/v1/chat/completions", "{oops", "application/json")->status, 400);
    EXPECT_EQ(client.Post("/v1/chat/completions", std::string(200'000, ' '), "application/json")->status,
              413);
    EXPECT_EQ(client.Get("/v2/models")->status, 404);
    Json unlimited = chat_body(Json::array({message("user", "Hello")}));
    unlimited["max_tokens"] = -1;
    EXPECT_GE(chat(server, unlimited)["usage"]["completion_tokens"].get<size_t>(), 1U);
    EXPECT_EQ(client.Get("/v1/models")->status, 200) << "and the server is still there";
    EXPECT_EQ(chat(server, chat_body(Json::array({message("user", "Hello")})))["object"], "chat.completion")
        << "no refused request kept a session";
}

TEST_F(ServerTest, KeysOriginsAndMonitoring) {
    ServerOptions options;
    options.api_keys = {"secret", "other"};
    options.cors_origin = "https://example.org";
    const Running server(*model_, 2, {}, options);
    const Json body = chat_body(Json::array({message("user", "Hello")}));
    post(server, "/v1/chat/completions", body, 401);
    post(server, "/v1/chat/completions", body, 401, {{"Authorization", "Bearer secre"}});
    post(server, "/v1/chat/completions", body, 401, {{"Authorization", "secret"}});
    post(server, "/v1/chat/completions", body, 200, {{"Authorization", "Bearer other"}});
    auto client = server.client();
    EXPECT_EQ(client.Get("/health")->status, 200);
    EXPECT_EQ(client.Get("/slots")->status, 401);
    const httplib::Headers key = {{"X-Api-Key", "secret"}};
    EXPECT_EQ(Json::parse(client.Get("/slots", key)->body).size(), 2U);
    EXPECT_EQ(Json::parse(client.Get("/props", key)->body)["total_slots"], 2);
    const std::string metrics = client.Get("/metrics", key)->body;
    EXPECT_NE(metrics.find("llamacpp:tokens_predicted_total 8\n"), std::string::npos) << metrics;
    EXPECT_NE(metrics.find("spool:client_errors_total 4\n"), std::string::npos) << metrics;
    const auto preflight = client.Options("/v1/chat/completions");
    EXPECT_EQ(preflight->status, 204);
    EXPECT_EQ(preflight->get_header_value("Access-Control-Allow-Origin"), "https://example.org");
}

} // namespace
} // namespace spool
