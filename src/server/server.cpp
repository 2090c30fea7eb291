#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <cpp-httplib/httplib.h>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "server/api_error.h"
#include "server/embeddings.h"
#include "server/reply_stream.h"
#include "server/responses.h"

namespace spool {

namespace {

void answer(httplib::Response& response, const Json& json, int status = 200) {
    response.status = status;
    response.set_content(json_text(json), "application/json");
}

/// The request's body as `parse` reads it.
template <typename Parse>
auto read_request(const httplib::Request& request, Parse parse) {
    try {
        return parse(Json::parse(request.body));
    } catch (const Json::parse_error& error) {
        bad_request(fmt::format("the body is not JSON: {}", error.what()));
    } catch (const Json::type_error& error) {
        bad_request(fmt::format("a field is of another type than it should be: {}", error.what()));
    }
}

std::string name_of(const Embedder& embedder) { return embedder.model().path().stem().string(); }

/// Compares in a time that does not tell how much of a key is right.
bool same_key(const std::string& given, const std::string& key) {
    unsigned difference = given.size() == key.size() ? 0 : 1;
    for (size_t i = 0; i < given.size(); ++i) {
        difference |= static_cast<unsigned>(given[i] ^ key[i % std::max<size_t>(1, key.size())]);
    }
    return difference == 0;
}

/// Starts the drawing of a request's replies, and sends them as its client wants them.
void reply(const httplib::Request& request, httplib::Response& response, const CompletionRequest& wanted,
           Engine& engine, std::unique_ptr<ReplyWriter> writer, Metrics& metrics,
           const std::atomic<bool>& stopping) {
    auto stream =
        std::make_shared<ReplyStream>(engine, wanted, engine.prepare(wanted.task), std::move(writer),
                                      [&metrics](const TurnOutcome& outcome) { metrics.add(outcome); });
    if (!wanted.stream) {
        answer(response, stream->wait([&] { return stopping || request.is_connection_closed(); }));
        return;
    }
    response.set_chunked_content_provider(
        "text/event-stream",
        [stream, &stopping](size_t /*offset*/, httplib::DataSink& sink) {
            const auto event = stream->next_event();
            if (stopping) {
                stream->cancel();
            }
            if (event && !sink.write(event->data(), event->size())) {
                return false;
            }
            if (!event && !sink.is_writable()) {
                return false;
            }
            if (stream->finished()) {
                sink.done();
            }
            return true;
        },
        [stream](bool /*success*/) { stream->cancel(); });
}

} // namespace

Server::Server(Engine& engine, ServerOptions options)
    : engine_(engine), options_(std::move(options)), http_(std::make_unique<httplib::Server>()) {
    // A thread serves one connection: those that draw, and some that ask for other things or are slow.
    const size_t threads = engine.options().pool.sessions * 2 + 16;
    http_->new_task_queue = [threads] { return std::make_unique<httplib::ThreadPool>(threads).release(); };
    http_->set_payload_max_length(options_.max_body_bytes);
    http_->set_read_timeout(options_.read_seconds);
    http_->set_write_timeout(options_.read_seconds);
    http_->set_keep_alive_timeout(5);
    http_->set_tcp_nodelay(true);
    // Not SO_REUSEPORT, the library's own choice: two servers would share one port unawares.
    http_->set_socket_options(
        [](socket_t socket) { httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEADDR, 1); });
    add_routes();
    bind();
}

void Server::bind() {
    port_ = options_.port == 0 ? http_->bind_to_any_port(options_.host) : options_.port;
    if (port_ < 0 || (options_.port != 0 && !http_->bind_to_port(options_.host, port_))) {
        fail(ErrorCode::io, "{}:{} cannot be listened on: is it in use? --port N chooses another",
             options_.host, options_.port);
    }
}

Server::~Server() { stop(); }

void Server::run() { http_->listen_after_bind(); }

void Server::stop() {
    stopping_ = true;
    http_->stop();
}

bool Server::authorised(const httplib::Request& request) const {
    if (options_.api_keys.empty() || request.path == "/health" || request.path == "/v1/health") {
        return true;
    }
    const std::string bearer = "Bearer ";
    std::string given = request.get_header_value("Authorization");
    given = given.starts_with(bearer) ? given.substr(bearer.size()) : request.get_header_value("X-Api-Key");
    bool found = false;
    for (const std::string& key : options_.api_keys) {
        found = same_key(given, key) || found;
    }
    return found;
}

void Server::guard(const httplib::Request& request, httplib::Response& response, Handler handler) {
    try {
        if (!authorised(request)) {
            throw ApiError(401, "authentication_error",
                           "a valid API key is needed: Authorization: Bearer KEY");
        }
        (this->*handler)(request, response);
    } catch (const std::exception&) {
        const ApiError error = current_api_error();
        metrics_.add_error(error.status());
        answer(response, error.body(), error.status());
        if (error.status() == 503) {
            response.set_header("Retry-After", "2");
        }
    }
}

void Server::add_routes() {
    const auto get = [this](const std::string& path, Handler handler) {
        http_->Get(path, [this, handler](const httplib::Request& request, httplib::Response& response) {
            guard(request, response, handler);
        });
    };
    const auto post = [this](const std::string& path, Handler handler) {
        http_->Post(path, [this, handler](const httplib::Request& request, httplib::Response& response) {
            guard(request, response, handler);
        });
    };
    for (const std::string prefix : {"", "/v1"}) {
        post(prefix + "/chat/completions", &Server::chat_completions);
        post(prefix + "/completions", &Server::completions);
        post(prefix + "/responses", &Server::responses);
        post(prefix + "/embeddings", &Server::embeddings);
        get(prefix + "/models", &Server::models);
        get(prefix + "/health", &Server::health);
    }
    get("/props", &Server::props);
    get("/slots", &Server::slots);
    get("/metrics", &Server::metrics);
    http_->set_error_handler([](const httplib::Request& request, httplib::Response& response) {
        if (response.body.empty()) {
            const std::string message =
                response.status == 413 ? "the body is larger than --max-body allows"
                : response.status == 404
                    ? fmt::format("there is no route {} {}", request.method, request.path)
                    : fmt::format("HTTP status {}", response.status);
            answer(response, ApiError(response.status, "invalid_request_error", message).body(),
                   response.status);
        }
    });
    http_->set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
        if (!options_.cors_origin.empty()) {
            response.set_header("Access-Control-Allow-Origin", options_.cors_origin);
            response.set_header("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key");
            response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
        }
        if (request.method == "OPTIONS") {
            response.status = 204;
            return httplib::Server::HandlerResponse::Handled;
        }
        return httplib::Server::HandlerResponse::Unhandled;
    });
}

std::string Server::model_of(const CompletionRequest& wanted) const {
    return wanted.model.empty() ? options_.model_name : wanted.model;
}

void Server::chat_completions(const httplib::Request& request, httplib::Response& response) {
    const CompletionRequest wanted =
        read_request(request, [&](const Json& body) { return parse_chat_request(body, engine_.options()); });
    reply(request, response, wanted, engine_,
          completion_writer(false, fmt::format("chatcmpl-{}", next_id_++), model_of(wanted),
                            wanted.stream_usage, engine_.tokenizer()),
          metrics_, stopping_);
}

void Server::completions(const httplib::Request& request, httplib::Response& response) {
    const CompletionRequest wanted =
        read_request(request, [&](const Json& body) { return parse_text_request(body, engine_.options()); });
    reply(request, response, wanted, engine_,
          completion_writer(true, fmt::format("cmpl-{}", next_id_++), model_of(wanted), wanted.stream_usage,
                            engine_.tokenizer()),
          metrics_, stopping_);
}

void Server::responses(const httplib::Request& request, httplib::Response& response) {
    const std::string id = new_response_id();
    const CompletionRequest wanted = read_request(
        request, [&](const Json& body) { return parse_response_request(body, id, engine_.options()); });
    reply(request, response, wanted, engine_, response_writer(id, model_of(wanted)), metrics_, stopping_);
}

void Server::embeddings(const httplib::Request& request, httplib::Response& response) {
    if (options_.embedder == nullptr) {
        no_embedder();
    }
    Embedder& embedder = *options_.embedder;
    const EmbeddingRequest wanted = read_request(
        request, [&](const Json& body) { return parse_embedding_request(body, embedder.width()); });
    const EmbeddingReply reply = answer_embeddings(
        embedder, wanted, name_of(embedder), [&] { return stopping_ || request.is_connection_closed(); });
    metrics_.add_embeddings(reply.texts, reply.tokens);
    answer(response, reply.json);
}

void Server::models(const httplib::Request& /*request*/, httplib::Response& response) {
    const auto entry = [](const std::string& name, const Json& meta) -> Json {
        return {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "spool"}, {"meta", meta}};
    };
    const ModelFacts& facts = engine_.model().facts();
    Json all = Json::array(
        {entry(options_.model_name, {{"n_vocab", facts.vocab_size}, {"description", facts.description}})});
    if (const auto& embedder = options_.embedder) {
        all.push_back(entry(name_of(*embedder), {{"n_embd", embedder->width()},
                                                 {"max_tokens", embedder->max_tokens()},
                                                 {"description", embedder->model().facts().description}}));
    }
    answer(response, {{"object", "list"}, {"data", std::move(all)}});
}

void Server::health(const httplib::Request& /*request*/, httplib::Response& response) {
    answer(response, {{"status", "ok"}});
}

void Server::props(const httplib::Request& /*request*/, httplib::Response& response) {
    const MemorySettings& memory = engine_.pool().settings();
    answer(response, {{"total_slots", engine_.options().pool.sessions},
                      {"model_path", engine_.model().path().string()},
                      {"model_alias", options_.model_name},
                      {"strategy", to_string(memory.strategy)},
                      {"window", memory.window},
                      {"chunk", memory.chunk},
                      {"max_distant", memory.max_distant},
                      {"kv_bytes", engine_.pool().memory().kv},
                      {"thinks", engine_.format().reasoning().thinks()}});
}

void Server::slots(const httplib::Request& /*request*/, httplib::Response& response) {
    Json all = Json::array();
    for (const StateStore::SlotView& slot : engine_.store().slots()) {
        all.push_back({{"id", slot.number},
                       {"is_processing", slot.busy},
                       {"n_past", slot.tokens},
                       {"cells", slot.cells}});
    }
    answer(response, all);
}

void Server::metrics(const httplib::Request& /*request*/, httplib::Response& response) {
    response.set_content(metrics_.text(engine_), "text/plain; version=0.0.4");
}

} // namespace spool
