#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "convert/model.h"
#include "core/file.h"
#include "core/json_file.h"
#include "llm/context.h"
#include "llm/embedder.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/small_model.h"
#include "support/temporary_folder.h"

namespace spool {

namespace {

using test::expect_error;
using test::fixture;
using test::TemporaryFolder;

double cosine(const std::vector<float>& left, const std::vector<float>& right) {
    EXPECT_EQ(left.size(), right.size());
    return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

struct Golden {
    std::vector<std::string> texts;
    std::vector<std::vector<Token>> ids;
    std::vector<std::vector<float>> vectors;
};

Golden read_golden(const std::filesystem::path& path) {
    Golden golden;
    for (const JsonValue& json : JsonValue::parse(read_text(path))) {
        golden.texts.push_back(json.at("text"));
        golden.ids.push_back(json.at("ids"));
        golden.vectors.push_back(json.at("vector"));
    }
    return golden;
}

/// Embedders of the small random encoders of the convert tests.
class EmbedderTest : public testing::Test {
  protected:
    EmbedderOptions converted(const std::string& name, const std::string& as = "") {
        const auto path = temp_ / (name + ".gguf");
        hugging_face_to_gguf(fixture("convert/data/" + name), path, {.type = GGML_TYPE_F32, .name = as});
        return {.path = path, .threads = 1};
    }
    static Golden golden(const std::string& name) {
        return read_golden(fixture("convert/data/" + name + "/golden.json"));
    }

  private:
    TemporaryFolder temp_;
};

TEST(DefaultEmbedder, GivesTheVectorsOfSentenceTransformers) {
    const auto model = test::default_embedder();
    if (!model) {
        GTEST_SKIP() << "models/all-MiniLM-L6-v2.gguf is not there; run make embedder";
    }
    Embedder embedder({.path = *model, .threads = 1});
    EXPECT_EQ(embedder.width(), 384U);
    EXPECT_EQ(embedder.max_tokens(), 256U);
    EXPECT_EQ(embedder.query_prefix(), "");
    const Golden golden = read_golden(fixture("llm/data/embeddings.json"));
    const Embeddings found = embedder.embed(golden.texts);
    ASSERT_GE(found.vectors.size(), 12U);
    for (size_t i = 0; i < golden.texts.size(); ++i) {
        EXPECT_EQ(embedder.tokenize(golden.texts[i]), golden.ids[i]) << golden.texts[i];
        EXPECT_GE(cosine(found.vectors[i], golden.vectors[i]), 1 - 1e-3) << golden.texts[i];
    }
}

TEST(DefaultEmbedder, QuestionIsNearestToItsAnswer) {
    const auto model = test::default_embedder();
    if (!model) {
        GTEST_SKIP() << "models/all-MiniLM-L6-v2.gguf is not there; run make embedder";
    }
    Embedder embedder({.path = *model, .threads = 1});
    const auto question = embedder.embed("How tall is Mount Fuji?", TextRole::query);
    const double right = cosine(question, embedder.embed("Fuji is 3,776.24 m high."));
    EXPECT_GT(right, cosine(question, embedder.embed("My parking spot is B3, number 47.")) + 0.3);
    EXPECT_GT(right, cosine(question, embedder.embed("The cat sleeps on the sofa.")) + 0.3);
}

TEST_F(EmbedderTest, PoolsAsTheFileStates) {
    for (const std::string name : {"bert", "bert-masked"}) {
        Embedder embedder(converted(name));
        EXPECT_EQ(embedder.pooling(), name == "bert" ? Pooling::mean : Pooling::cls);
        const Golden expected = golden(name);
        const Embeddings found = embedder.embed(expected.texts);
        for (size_t i = 0; i < expected.texts.size(); ++i) {
            EXPECT_GT(cosine(found.vectors[i], expected.vectors[i]), 1 - 1e-4) << expected.texts[i];
        }
    }
}

TEST_F(EmbedderTest, ForcedPoolingTakesPrecedence) {
    EmbedderOptions options = converted("bert");
    options.pooling = Pooling::cls;
    Embedder embedder(options);
    const Golden expected = golden("bert");
    EXPECT_EQ(embedder.pooling(), Pooling::cls);
    EXPECT_LT(cosine(embedder.embed(expected.texts[0]), expected.vectors[0]), 0.999);
}

TEST_F(EmbedderTest, TextsTogetherGetTheVectorsOfEachAlone) {
    EmbedderOptions options = converted("bert");
    options.batch = 1; // raised to the longest text: several decodes
    Embedder small(options);
    options.batch = 4096;
    Embedder large(options);
    std::vector<std::string> texts = golden("bert").texts;
    for (size_t i = 0; i < 300; ++i) { // more than a decode may hold
        texts.push_back(i % 3 == 0 ? "" : "fox " + std::to_string(i));
    }
    const Embeddings together = large.embed(texts);
    const Embeddings split = small.embed(texts);
    EXPECT_EQ(together.tokens, split.tokens);
    for (size_t i = 0; i < texts.size(); i += i < 20 ? 1 : 37) {
        EXPECT_GT(cosine(together.vectors[i], small.embed(texts[i])), 1 - 1e-5) << texts[i];
        EXPECT_GT(cosine(together.vectors[i], split.vectors[i]), 1 - 1e-5) << texts[i];
    }
}

TEST_F(EmbedderTest, VectorsHaveLengthOne) {
    Embedder embedder(converted("bert"));
    for (const auto& vector : embedder.embed(golden("bert").texts).vectors) {
        EXPECT_NEAR(cosine(vector, vector), 1.0, 1e-5);
    }
}

TEST_F(EmbedderTest, LongTextsAreCutAndKeepTheirFrame) {
    Embedder embedder(converted("bert"));
    std::string text;
    for (int i = 0; i < 100; ++i) {
        text += "the quick fox ";
    }
    bool truncated = false;
    const auto tokens = embedder.tokenize(text, TextRole::document, &truncated);
    EXPECT_TRUE(truncated);
    ASSERT_EQ(tokens.size(), 48U);
    EXPECT_EQ(tokens.front(), embedder.tokenize("").front());
    EXPECT_EQ(tokens.back(), embedder.tokenize("").back());
    const std::vector<std::string> texts = {text, "fox", text + text};
    const Embeddings found = embedder.embed(texts);
    EXPECT_EQ(found.truncated, 2U);
    EXPECT_EQ(found.tokens, 48U + 3 + 48);
    EXPECT_GT(cosine(found.vectors[0], found.vectors[2]), 1 - 1e-5);
}

TEST_F(EmbedderTest, OnlyQueriesGetThePrefix) {
    EmbedderOptions options = converted("bert-masked");
    Embedder stated(options);
    EXPECT_EQ(stated.query_prefix(), "search: ");
    EXPECT_EQ(stated.tokenize("the fox", TextRole::query), stated.tokenize("search: the fox"));
    EXPECT_NE(stated.tokenize("the fox", TextRole::query), stated.tokenize("the fox"));
    EXPECT_GT(cosine(stated.embed("the fox", TextRole::query), stated.embed("search: the fox")), 1 - 1e-5);
    options.query_prefix = "";
    EXPECT_EQ(Embedder(options).tokenize("the fox", TextRole::query), stated.tokenize("the fox"));
    options.query_prefix = "find ";
    EXPECT_EQ(Embedder(options).tokenize("the fox", TextRole::query), stated.tokenize("find the fox"));
}

TEST_F(EmbedderTest, EnglishBgeModelsGetTheirPrefixWithoutStatingIt) {
    EXPECT_EQ(Embedder(converted("bert", "bge-small-en-v1.5")).query_prefix(),
              "Represent this sentence for searching relevant passages: ");
    EXPECT_EQ(Embedder(converted("bert", "Bge Base En V1.5")).query_prefix(),
              "Represent this sentence for searching relevant passages: ");
    EXPECT_EQ(Embedder(converted("bert", "bge-large-zh-v1.5")).query_prefix(), "");
    EXPECT_EQ(Embedder(converted("bert", "all-MiniLM-L6-v2")).query_prefix(), "");
}

TEST_F(EmbedderTest, ThreadsTakeTurns) {
    Embedder embedder(converted("bert"));
    const Golden expected = golden("bert");
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (size_t i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < 20; ++round) {
                EXPECT_GT(cosine(embedder.embed(expected.texts[i]), expected.vectors[i]), 1 - 1e-4);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST_F(EmbedderTest, NoTextsGiveNoVectors) {
    Embedder embedder(converted("bert"));
    const Embeddings found = embedder.embed(std::span<const std::string>{});
    EXPECT_TRUE(found.vectors.empty());
    EXPECT_EQ(found.tokens, 0U);
}

TEST_F(EmbedderTest, AnEncoderIsRefusedAsALanguageModel) {
    const Model model({.path = converted("bert").path, .on_progress = {}});
    expect_error(ErrorCode::unsupported, {"bert.gguf", "encoder", "--embedder"},
                 [&] { Context(model, {.cells = 256}); });
}

class NoEmbedder : public test::WithSmallModel {};

TEST_F(NoEmbedder, ALanguageModelIsRefusedWithTheWayOut) {
    expect_error(ErrorCode::unsupported, {"no embedder", "pooling", "spool convert"},
                 [&] { Embedder({.path = model_->path(), .threads = 1}); });
}

} // namespace

} // namespace spool
