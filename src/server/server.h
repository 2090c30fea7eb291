// The HTTP side: routes, limits, keys, streams.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "llm/embedder.h"
#include "server/engine.h"
#include "server/metrics.h"
#include "server/openai.h"

namespace httplib {
class Server;
struct Request;
struct Response;
} // namespace httplib

namespace spool {

struct ServerOptions {
    std::string host = "127.0.0.1";
    int port = 8080;                   ///< 0: any free one
    std::vector<std::string> api_keys; ///< one of them must come with each request; empty: none needed
    std::string cors_origin;           ///< pages from there may ask; empty: none
    size_t max_body_bytes = size_t{64} << 20U;
    int read_seconds = 30; ///< a client that sends nothing for so long is left
    std::string model_name;
    std::shared_ptr<Embedder> embedder; ///< of /v1/embeddings; nothing: that route says how to get one
};

class Server {
  public:
    /// `engine` must outlive it. Binds at once. Throws Error{io} if the address cannot be used.
    Server(Engine& engine, ServerOptions options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    int port() const { return port_; }
    /// Serves until stop(), from any thread. Replies being drawn end then, and their clients are told.
    void run();
    void stop();

  private:
    using Handler = void (Server::*)(const httplib::Request&, httplib::Response&);

    void add_routes();
    void bind();
    void guard(const httplib::Request& request, httplib::Response& response, Handler handler);
    std::string model_of(const CompletionRequest& wanted) const;
    bool authorised(const httplib::Request& request) const;

    void chat_completions(const httplib::Request& request, httplib::Response& response);
    void completions(const httplib::Request& request, httplib::Response& response);
    void responses(const httplib::Request& request, httplib::Response& response);
    void embeddings(const httplib::Request& request, httplib::Response& response);
    void models(const httplib::Request& request, httplib::Response& response);
    void health(const httplib::Request& request, httplib::Response& response);
    void props(const httplib::Request& request, httplib::Response& response);
    void slots(const httplib::Request& request, httplib::Response& response);
    void metrics(const httplib::Request& request, httplib::Response& response);

    Engine& engine_;
    ServerOptions options_;
    Metrics metrics_;
    std::unique_ptr<httplib::Server> http_;
    int port_ = 0;
    std::atomic<bool> stopping_ = false;
    std::atomic<uint64_t> next_id_ = 1;
};

} // namespace spool
