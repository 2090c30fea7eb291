#include <numeric>

#include <gtest/gtest.h>

#include "context/session.h"
#include "convert/convert.h"
#include "convert/inspect.h"
#include "core/file.h"
#include "core/hash.h"
#include "formats/safetensors.h"
#include "generation/session_file.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/small_model.h"
#include "support/temporary_folder.h"

namespace spool {

namespace {

using test::TemporaryFolder;

std::filesystem::path data(const std::string& name) { return test::fixture("convert/data/" + name); }

TEST(Inspect, DescribesEveryKind) {
    const TemporaryFolder temp;
    convert(data("llama"), temp / "m.gguf", {});
    convert(data("llama-adapter"), temp / "l.gguf", {.base = temp / "m.gguf"});
    for (const auto& path :
         {temp / "m.gguf", temp / "l.gguf", data("pooler/pooler.pt"), data("pooler"),
          data("pooler/pooler.safetensors"), data("llama"), data("llama-mlx"), data("llama-adapter")}) {
        const Json report = inspect(path);
        EXPECT_TRUE(report.at("problem").is_null()) << report.at("problem");
        EXPECT_EQ(report.at("kind"), to_string(detect_source(path)));
        EXPECT_GT(report.at("bytes").get<size_t>(), 0U);
    }
    const Json model = inspect(temp / "m.gguf");
    EXPECT_EQ(model.at("metadata").at("llama.block_count"), 2);
    EXPECT_EQ(model.at("metadata").at("tokenizer.ggml.tokens").at("count"), 304);
    EXPECT_EQ(
        model.at("tensors").front(),
        (Json{
            {"name", "token_embd.weight"}, {"type", "bf16"}, {"shape", {304, 32}}, {"bytes", 304 * 32 * 2}}));
}

TEST(Inspect, ReportsWhatMakesAFileUnfit) {
    const TemporaryFolder temp;
    const SafetensorsFile file(data("pooler/pooler.safetensors"));
    auto tensors = file.tensors();
    std::erase_if(tensors, [](const TensorView& tensor) { return tensor.name == "blocks.0.lnk.bias"; });
    write_safetensors(temp / "p.safetensors", tensors);
    const Json report = inspect(temp / "p.safetensors");
    EXPECT_NE(report.at("problem").get<std::string>().find("blocks.0.lnk.bias"), std::string::npos);
    EXPECT_EQ(report.at("tensors").size(), tensors.size());
}

/// A session of 100 tokens under soft-prompt, with a pooler of random weights.
class InspectSession : public ::testing::Test {
  protected:
    InspectSession() {
        RandomModelShape shape;
        shape.width = 16; // the fixture's pooler's
        shape.heads = 2;
        shape.kv_heads = 1;
        const auto path = test::write_small_model(temp_, shape);
        convert(data("pooler"), temp_ / "bundle", {.base = path});
        const Bundle bundle = read_bundle(temp_ / "bundle");
        const auto model = test::load_model(path);
        PoolOptions options;
        options.memory.strategy = StrategyKind::soft_prompt;
        options.memory.refresh = Layout::carry;
        options.memory.pin = 5;
        options.memory.window = 32;
        options.memory.chunk = 16;
        options.memory.max_distant = 40;
        options.threads = 1;
        SessionPool pool(*model, &bundle, options);
        const auto session = pool.open();
        std::vector<Token> tokens(100);
        std::iota(tokens.begin(), tokens.end(), 10);
        session->read(tokens);
        save_session(*session, pool, &bundle, file_);
        transcript_ = session->transcript();
        fingerprint_ = model->fingerprint();
    }

    TemporaryFolder temp_;
    std::filesystem::path file_ = temp_ / "thought"; // no extension: content tells
    Transcript transcript_;
    std::string fingerprint_;
};

TEST_F(InspectSession, ShowsModelBundleSettingsTokensAndPositions) {
    ASSERT_GT(transcript_.evicted, 0U);
    EXPECT_EQ(detect_source(file_), SourceKind::gguf_session);
    const Json report = inspect(file_);
    EXPECT_TRUE(report.at("problem").is_null()) << report.at("problem");
    EXPECT_EQ(report.at("kind"), "spool session");
    const Json& session = report.at("session");
    EXPECT_NE(session.at("model").get<std::string>().find("llama"), std::string::npos) << session;
    EXPECT_EQ(session.at("model_fingerprint"), fingerprint_);
    EXPECT_EQ(session.at("bundle"), sha256_file(temp_ / "bundle" / "bundle.json"));
    EXPECT_EQ(session.at("strategy"), "soft-prompt");
    EXPECT_EQ(session.at("refresh"), "carry");
    EXPECT_EQ(session.at("pin"), 5);
    EXPECT_EQ(session.at("window"), 32);
    EXPECT_EQ(session.at("chunk"), 16);
    EXPECT_EQ(session.at("max_distant"), 40);
    EXPECT_EQ(session.at("cache_type_k"), "f16");
    EXPECT_EQ(session.at("tokens"), 100);
    EXPECT_EQ(session.at("pinned_tokens"), 5);
    EXPECT_EQ(session.at("distant_tokens"), 40);
    EXPECT_EQ(session.at("evicted_tokens"), transcript_.evicted);
    EXPECT_EQ(session.at("window_tokens"), 100 - transcript_.window_start);
    EXPECT_EQ(session.at("soft_prompt_vectors"), 4);
    EXPECT_EQ(session.at("window_position"), transcript_.position(transcript_.window_start));
    EXPECT_EQ(session.at("next_position"), transcript_.next_position());
    EXPECT_GT(session.at("cache_bytes").get<size_t>(), 0U);
}

TEST_F(InspectSession, DamageIsTheReportsProblem) {
    std::string bytes = read_text(file_);
    bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
    write_text(file_, bytes);
    const Json report = inspect(file_);
    EXPECT_NE(report.at("problem").get<std::string>().find("cache"), std::string::npos)
        << report.at("problem");
    EXPECT_FALSE(report.contains("session"));
}

TEST_F(InspectSession, ATokenOutsideTheVocabularyIsDamage) {
    const GgufFile good(file_);
    GgufWriter writer;
    for (const auto& [key, value] : good.pairs()) {
        writer.set(key, value);
    }
    std::vector<Token> tokens = transcript_.tokens;
    tokens[50] = 304;
    for (const GgufTensor& tensor : good.tensors()) {
        const auto bytes = tensor.name == "transcript" ? std::as_bytes(std::span(tokens)) : tensor.data;
        writer.add(tensor.name, tensor.type, tensor.ne, bytes);
    }
    writer.write(temp_ / "other");
    EXPECT_NE(inspect(temp_ / "other").at("problem").get<std::string>().find("outside the vocabulary"),
              std::string::npos);
}

TEST_F(InspectSession, CannotBeConverted) {
    test::expect_error(ErrorCode::invalid_argument, {"thought", "spool session"},
                       [&] { convert(file_, temp_ / "m.gguf", {.type = GGML_TYPE_F32}); });
}

} // namespace

} // namespace spool
