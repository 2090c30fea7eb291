// /v1/embeddings as its clients see it, on a small encoder of random weights.
#include <cpp-httplib/httplib.h>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "base64.hpp"
#include "convert/model.h"
#include "server/server.h"
#include "support/small_model.h"

namespace spool {
namespace {

/// A running server with or without an embedder.
class Running {
  public:
    Running(const Model& model, std::shared_ptr<Embedder> embedder)
        : engine_(model, nullptr, engine_options()), server_(engine_, server_options(std::move(embedder))),
          thread_([this] { server_.run(); }) {}
    ~Running() {
        server_.stop();
        thread_.join();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    Json post(const Json& body, int expected = 200, const std::string& path = "/v1/embeddings") const {
        const auto response = client().Post(path, body.dump(), "application/json");
        if (!response) {
            ADD_FAILURE() << "no answer: " << httplib::to_string(response.error());
            return {};
        }
        EXPECT_EQ(response->status, expected) << response->body;
        return Json::parse(response->body, nullptr, false);
    }
    std::string get(const std::string& path) const {
        const auto response = client().Get(path);
        return response ? response->body : "";
    }
    httplib::Client client() const {
        httplib::Client client("127.0.0.1", server_.port());
        client.set_read_timeout(60);
        return client;
    }

  private:
    static EngineOptions engine_options() {
        EngineOptions options;
        options.pool.sessions = 1;
        options.pool.threads = 1;
        options.pool.memory.strategy = StrategyKind::window;
        options.pool.memory.window = 64;
        options.pool.memory.chunk = 32;
        return options;
    }
    static ServerOptions server_options(std::shared_ptr<Embedder> embedder) {
        ServerOptions options;
        options.port = 0;
        options.model_name = "small";
        options.embedder = std::move(embedder);
        return options;
    }

    Engine engine_;
    Server server_;
    std::thread thread_;
};

double dot(const std::vector<float>& left, const std::vector<float>& right) {
    EXPECT_EQ(left.size(), right.size());
    return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

class EmbeddingsTest : public test::WithSmallModel {
  protected:
    std::shared_ptr<Embedder> embedder(const std::string& name = "bert") {
        const auto path = folder_ / (name + ".gguf");
        hugging_face_to_gguf(test::fixture("convert/data/" + name), path, {.type = GGML_TYPE_F32});
        return std::make_shared<Embedder>(EmbedderOptions{.path = path, .threads = 1});
    }
    static std::string refusal(const Running& server, const Json& body) {
        return server.post(body, 400)["error"]["message"].get<std::string>();
    }
};

TEST_F(EmbeddingsTest, ATextAndAListOfTextsGetTheirVectors) {
    const auto embedder = this->embedder();
    const Running server(*model_, embedder);
    const Json one = server.post({{"input", "the quick fox"}, {"model", "any"}});
    EXPECT_EQ(one["object"], "list");
    EXPECT_EQ(one["model"], "any");
    ASSERT_EQ(one["data"].size(), 1U);
    EXPECT_EQ(one["data"][0]["object"], "embedding");
    EXPECT_GT(dot(one["data"][0]["embedding"], embedder->embed("the quick fox")), 1 - 1e-5);
    EXPECT_EQ(one["usage"]["prompt_tokens"], embedder->tokenize("the quick fox").size());
    EXPECT_EQ(one["usage"]["total_tokens"], one["usage"]["prompt_tokens"]);

    const std::vector<std::string> texts = {"the lazy dog", "", "the quick fox"};
    const Json several = server.post({{"input", texts}});
    EXPECT_EQ(several["model"], "bert");
    ASSERT_EQ(several["data"].size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(several["data"][i]["index"], i);
        EXPECT_GT(dot(several["data"][i]["embedding"], embedder->embed(texts[i])), 1 - 1e-5);
    }
}

TEST_F(EmbeddingsTest, ManyTextsKeepTheirOrder) {
    const auto embedder = this->embedder();
    const Running server(*model_, embedder);
    std::vector<std::string> texts;
    texts.reserve(200);
    for (int i = 0; i < 200; ++i) {
        texts.push_back("fox " + std::to_string(i * i));
    }
    const Json reply = server.post({{"input", texts}});
    ASSERT_EQ(reply["data"].size(), texts.size());
    for (size_t i = 0; i < texts.size(); i += 23) {
        EXPECT_EQ(reply["data"][i]["index"], i);
        EXPECT_GT(dot(reply["data"][i]["embedding"], embedder->embed(texts[i])), 1 - 1e-5);
    }
    texts.resize(2049, "fox");
    EXPECT_NE(refusal(server, {{"input", texts}}).find("2048"), std::string::npos);
}

TEST_F(EmbeddingsTest, Base64HoldsTheSameFloats) {
    const Running server(*model_, embedder());
    const std::vector<float> plain = server.post({{"input", "fox"}})["data"][0]["embedding"];
    const std::string coded =
        server.post({{"input", "fox"}, {"encoding_format", "base64"}})["data"][0]["embedding"];
    const std::string bytes = base64::decode(coded);
    ASSERT_EQ(bytes.size(), plain.size() * sizeof(float));
    std::vector<float> decoded(plain.size());
    std::memcpy(decoded.data(), bytes.data(), bytes.size());
    EXPECT_GT(dot(decoded, plain), 1 - 1e-5);
}

TEST_F(EmbeddingsTest, FewerDimensionsAreTheFirstOnesNormalisedAgain) {
    const Running server(*model_, embedder());
    const std::vector<float> whole = server.post({{"input", "fox"}})["data"][0]["embedding"];
    const std::vector<float> part =
        server.post({{"input", "fox"}, {"dimensions", 8}})["data"][0]["embedding"];
    ASSERT_EQ(part.size(), 8U);
    EXPECT_NEAR(dot(part, part), 1, 1e-5);
    EXPECT_NEAR(part[0] * whole[1], part[1] * whole[0], 1e-6);
    EXPECT_NE(refusal(server, {{"input", "fox"}, {"dimensions", 33}}).find("32"), std::string::npos);
    EXPECT_NE(refusal(server, {{"input", "fox"}, {"dimensions", 0}}).find("dimensions"), std::string::npos);
}

TEST_F(EmbeddingsTest, QueriesGetThePrefixOfTheModel) {
    const auto embedder = this->embedder("bert-masked");
    const Running server(*model_, embedder);
    const Json query = server.post({{"input", "the fox"}, {"input_type", "query"}});
    EXPECT_EQ(query["usage"]["prompt_tokens"], embedder->tokenize("search: the fox").size());
    const Json document = server.post({{"input", "the fox"}, {"input_type", "document"}});
    EXPECT_EQ(document["usage"]["prompt_tokens"], embedder->tokenize("the fox").size());
}

TEST_F(EmbeddingsTest, WrongRequestsAreRefusedByName) {
    const Running server(*model_, embedder());
    EXPECT_NE(refusal(server, Json::object()).find("input"), std::string::npos);
    EXPECT_NE(refusal(server, {{"input", Json::array()}}).find("input"), std::string::npos);
    EXPECT_NE(refusal(server, {{"input", 7}}).find("input"), std::string::npos);
    EXPECT_NE(refusal(server, {{"input", {"a", nullptr}}}).find("[1]"), std::string::npos);
    EXPECT_NE(refusal(server, {{"input", {1, 2, 3}}}).find("token ids"), std::string::npos);
    EXPECT_NE(refusal(server, {{"input", {{1, 2}, {3}}}}).find("token ids"), std::string::npos);
    EXPECT_NE(refusal(server, {{"input", "a"}, {"encoding_format", "hex"}}).find("base64"),
              std::string::npos);
    EXPECT_NE(refusal(server, {{"input", "a"}, {"input_type", 3}}).find("query"), std::string::npos);
    EXPECT_NE(refusal(server, Json::array()).find("object"), std::string::npos);
    const auto broken = server.client().Post("/v1/embeddings", R"({"input": )", "application/json");
    ASSERT_TRUE(broken);
    EXPECT_EQ(broken->status, 400);
}

TEST_F(EmbeddingsTest, TheEmbedderIsListedAndCounted) {
    const Running server(*model_, embedder());
    server.post({{"input", {"a", "b"}}}, 200, "/embeddings");
    const Json models = Json::parse(server.get("/v1/models"));
    ASSERT_EQ(models["data"].size(), 2U);
    EXPECT_EQ(models["data"][0]["id"], "small");
    EXPECT_EQ(models["data"][1]["id"], "bert");
    EXPECT_EQ(models["data"][1]["meta"]["n_embd"], 32);
    EXPECT_NE(server.get("/metrics").find("\nspool:embedded_texts_total 2\n"), std::string::npos);
}

TEST_F(EmbeddingsTest, WithoutAnEmbedderTheErrorSaysHowToGetOne) {
    const Running server(*model_, nullptr);
    const Json error = server.post({{"input", "a"}}, 501);
    EXPECT_NE(error["error"]["message"].get<std::string>().find("--embedder"), std::string::npos);
    EXPECT_EQ(Json::parse(server.get("/v1/models"))["data"].size(), 1U);
}

} // namespace
} // namespace spool
