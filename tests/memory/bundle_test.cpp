#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "memory/bundle.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {

namespace {

using test::expect_error;
using test::TemporaryFolder;

class BundleFolder : public ::testing::Test {
  protected:
    BundleFolder() {
        write_text(temp_ / "pooler.gguf", "the pooler's bytes");
        write_text(temp_ / "lora.gguf", "the adapter's bytes");
        bundle_.folder = temp_.path();
        bundle_.base = {.architecture = "llama", .name = "SmolLM2", .vocab_sha256 = "abc"};
        bundle_.trained = {
            .rw = 512, .chunk = 64, .max_distant = 4096, .max_position = 8192, .layout = Layout::carry};
        bundle_.recovered = {{"value", 0.5}, {"command", "spool eval ce"}};
        write_bundle(bundle_);
    }

    void change(const std::function<void(JsonValue&)>& edit) const {
        JsonValue json = read_json_file(temp_ / "bundle.json").json();
        edit(json);
        write_text(temp_ / "bundle.json", json.dump());
    }
    void refuses(ErrorCode code, std::initializer_list<std::string_view> words) const {
        expect_error(code, words, [&] { read_bundle(temp_.path()); });
    }

    TemporaryFolder temp_;
    Bundle bundle_;
};

TEST_F(BundleFolder, ReadsBackWhatWasWritten) {
    const Bundle read = read_bundle(temp_.path());
    EXPECT_EQ(read.pooler, temp_ / "pooler.gguf");
    EXPECT_EQ(read.lora, temp_ / "lora.gguf");
    EXPECT_FALSE(read.model.has_value());
    EXPECT_EQ(read.base, bundle_.base);
    EXPECT_EQ(read.trained, bundle_.trained);
    EXPECT_EQ(read.recovered.at("value"), 0.5);
}

TEST_F(BundleFolder, AdapterAndFiguresAreOptional) {
    std::filesystem::remove(temp_ / "lora.gguf");
    bundle_.recovered = nullptr;
    write_bundle(bundle_);
    const Bundle read = read_bundle(temp_.path());
    EXPECT_FALSE(read.lora.has_value());
    EXPECT_TRUE(read.recovered.is_null());
}

TEST_F(BundleFolder, ChangedFilesAreRefusedWithBothValues) {
    write_text(temp_ / "lora.gguf", "the adapter's Bytes");
    refuses(ErrorCode::bad_file, {"lora.gguf", "SHA-256"});
    write_text(temp_ / "lora.gguf", "short");
    refuses(ErrorCode::bad_file, {"lora.gguf", "5 bytes", "19"});
    std::filesystem::remove(temp_ / "lora.gguf");
    refuses(ErrorCode::not_found, {"lora.gguf", "missing"});
}

TEST_F(BundleFolder, DamagedIndexIsRefusedByField) {
    const std::string whole = read_text(temp_ / "bundle.json");
    const auto damaged = [&](const std::function<void(JsonValue&)>& edit, ErrorCode code,
                             std::initializer_list<std::string_view> words) {
        write_text(temp_ / "bundle.json", whole);
        change(edit);
        refuses(code, words);
    };
    damaged([](JsonValue& j) { j["format"] = "other"; }, ErrorCode::bad_file, {"format", "other"});
    damaged([](JsonValue& j) { j["version"] = 2; }, ErrorCode::unsupported, {"version 2"});
    damaged([](JsonValue& j) { j.erase("base"); }, ErrorCode::bad_file, {"base", "missing"});
    damaged([](JsonValue& j) { j["trained"]["layout"] = "spiral"; }, ErrorCode::bad_file,
            {"layout", "spiral"});
    damaged([](JsonValue& j) { j["trained"]["rw"] = -1; }, ErrorCode::bad_file, {"rw", "-1"});
    damaged([](JsonValue& j) { j["files"].erase("pooler.gguf"); }, ErrorCode::bad_file, {"pooler.gguf"});
    damaged([](JsonValue& j) { j["files"]["../../secret"] = {{"bytes", 1}, {"sha256", ""}}; },
            ErrorCode::bad_file, {"../../secret"});
    damaged([](JsonValue& j) { j["files"]["pooler.gguf"].erase("sha256"); }, ErrorCode::bad_file,
            {"pooler.gguf", "sha256"});
    write_text(temp_ / "bundle.json", whole.substr(0, whole.size() / 2));
    refuses(ErrorCode::bad_file, {"bundle.json", "byte"});
    std::filesystem::remove(temp_ / "bundle.json");
    refuses(ErrorCode::not_found, {"bundle.json"});
}

TEST_F(BundleFolder, NeedsAPooler) {
    std::filesystem::remove(temp_ / "pooler.gguf");
    expect_error(ErrorCode::not_found, {"pooler.gguf"}, [&] { write_bundle(bundle_); });
}

TEST_F(BundleFolder, FitsOnlyTheModelItWasTrainedFor) {
    check_fits(bundle_, {.architecture = "llama", .name = "renamed", .vocab_sha256 = "abc"});
    expect_error(ErrorCode::incompatible, {"architecture", "llama", "qwen2", "SmolLM2"},
                 [&] { check_fits(bundle_, {.architecture = "qwen2", .name = "", .vocab_sha256 = "abc"}); });
    expect_error(ErrorCode::incompatible, {"vocabulary", "abc", "def"},
                 [&] { check_fits(bundle_, {.architecture = "llama", .name = "", .vocab_sha256 = "def"}); });
    bundle_.base = {};
    check_fits(bundle_, {.architecture = "qwen2", .name = "", .vocab_sha256 = "def"});
}

} // namespace

} // namespace spool
