#include <cstring>

#include <gtest/gtest.h>

#include "convert/convert.h"
#include "convert/pooler.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/json_file.h"
#include "formats/safetensors.h"
#include "support/corruption.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {

namespace {

using test::expect_error;
using test::fixture;
using test::TemporaryFolder;

std::filesystem::path data(const std::string& name) { return fixture("convert/data/" + name); }

const PoolerShape small = {.hidden = 16, .n_sp = 4, .heads = 2, .layers = 2, .ffn = 32};

std::string hash_of(const std::vector<float>& values) { return sha256(std::as_bytes(std::span(values))); }

/// The fixture's safetensors file with its tensors changed.
void write_changed(const std::filesystem::path& path,
                   const std::function<void(std::vector<TensorView>&)>& change) {
    const SafetensorsFile file(data("pooler/pooler.safetensors"));
    auto tensors = file.tensors();
    change(tensors);
    write_safetensors(path, tensors);
}

TensorView& named(std::vector<TensorView>& tensors, std::string_view name) {
    return *std::ranges::find(tensors, name, &TensorView::name);
}

TEST(ConvertPooler, SafetensorsAndTorchArchiveGiveTheSameWeights) {
    const auto a = import_pooler(data("pooler/pooler.safetensors"));
    const auto b = import_pooler(data("pooler/pooler.pt"));
    EXPECT_EQ(a.shape, small);
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.out_scale, b.out_scale);
    EXPECT_EQ(a.tensors, b.tensors);
    EXPECT_FLOAT_EQ(a.out_scale, 1.25F + 1.0F / 3.0F);
}

TEST(ConvertPooler, FourBitMatricesDequantiseAsNumpyDoes) {
    const auto pooler = import_pooler(data("pooler_4bit/pooler_4bit.safetensors"));
    EXPECT_EQ(pooler.shape, (PoolerShape{.hidden = 64, .n_sp = 4, .heads = 8, .layers = 1, .ffn = 64}));
    const auto golden = read_json_file(data("pooler_4bit/golden.json"));
    for (const auto& [name, hash] : golden.json().items()) {
        const auto& values =
            name == "out_scale" ? std::vector<float>{pooler.out_scale} : pooler.tensors.at(name);
        EXPECT_EQ(hash_of(values), hash.get<std::string>()) << name;
    }
}

TEST(ConvertPooler, RoundTripThroughGgufIsBitEqual) {
    const TemporaryFolder temp;
    const auto gguf = temp / "pooler.gguf";
    const auto back = temp / "back/pooler.safetensors";
    std::filesystem::create_directories(back.parent_path());
    convert(data("pooler/pooler.safetensors"), gguf,
            {.type = GGML_TYPE_F32, .trained = {.rw = 48, .chunk = 32}});
    EXPECT_EQ(read_pooler(gguf).trained.rw, 48U);
    convert(gguf, back, {});
    const SafetensorsFile a(data("pooler/pooler.safetensors"));
    const SafetensorsFile b(back);
    ASSERT_EQ(a.tensors().size(), b.tensors().size());
    for (const TensorView& tensor : a.tensors()) {
        const TensorView& other = b.at(tensor.name);
        EXPECT_EQ(other.shape, tensor.shape) << tensor.name;
        EXPECT_TRUE(std::ranges::equal(other.data, tensor.data)) << tensor.name;
    }
    const auto config = read_json_file(temp / "back/pooler_config.json");
    const auto original = read_json_file(data("pooler/pooler_config.json"));
    for (const auto* field : {"hidden_dim", "num_soft_tokens", "heads", "layers", "ffn"}) {
        EXPECT_EQ(config.u32(field), original.u32(field)) << field;
    }
    EXPECT_FLOAT_EQ(static_cast<float>(config.number("out_scale")),
                    static_cast<float>(original.number("out_scale")));
}

TEST(ConvertPooler, UpstreamsOwnFileConverts) {
    const auto source = test::shared_data("bundle-smollm2/pooler.safetensors");
    if (!source) {
        GTEST_SKIP() << "bundle-smollm2 is not there (see tests/support/data.h)";
    }
    const TemporaryFolder temp;
    convert(*source, temp / "f16.gguf", {.type = GGML_TYPE_F16});
    const auto exact = import_pooler(*source);
    EXPECT_EQ(exact.shape, (PoolerShape{.hidden = 576, .n_sp = 32, .heads = 8, .layers = 3, .ffn = 2048}));
    EXPECT_EQ(read_pooler(temp / "f16.gguf").weights.tensors, exact.tensors)
        << "the file is f16: nothing is lost";
    convert(temp / "f16.gguf", temp / "q8.gguf", {.type = GGML_TYPE_Q8_0});
    const auto rounded = read_pooler(temp / "q8.gguf").weights;
    double error = 0;
    double size = 0;
    for (const auto& [name, values] : exact.tensors) {
        for (size_t i = 0; i < values.size(); ++i) {
            error += std::pow(values[i] - rounded.tensors.at(name)[i], 2);
            size += std::pow(values[i], 2);
        }
    }
    EXPECT_LT(std::sqrt(error / size), 0.01);
}

TEST(ConvertPooler, ConfigAndTensorsMustAgreeAndBothAreNamed) {
    const TemporaryFolder temp;
    std::filesystem::copy_file(data("pooler/pooler.safetensors"), temp / "pooler.safetensors");
    const JsonValue config = read_json_file(data("pooler/pooler_config.json")).json();
    const auto contradicts = [&](const std::string& field, const JsonValue& value) {
        JsonValue copy = config;
        copy[field] = value;
        write_text(temp / "pooler_config.json", copy.dump());
        expect_error(ErrorCode::bad_file, {"pooler_config.json", field, "pooler.safetensors"},
                     [&] { import_pooler(temp / "pooler.safetensors"); });
    };
    contradicts("hidden_dim", 32);
    contradicts("num_soft_tokens", 5);
    contradicts("layers", 3);
    contradicts("ffn", 64);
    contradicts("out_scale", 2.0);
    write_text(temp / "pooler_config.json", R"({"heads": 3})");
    expect_error(ErrorCode::bad_file, {"pooler.safetensors", "3 heads", "16"},
                 [&] { import_pooler(temp / "pooler.safetensors"); });
    write_text(temp / "pooler_config.json", R"({"heads": 2})");
    EXPECT_EQ(import_pooler(temp / "pooler.safetensors").shape, small);
    expect_error(ErrorCode::invalid_argument, {"heads", "2", "4"},
                 [&] { import_pooler(temp / "pooler.safetensors", 4); });
}

TEST(ConvertPooler, HeadsComeFromTheCallerWithoutAConfig) {
    const TemporaryFolder temp;
    std::filesystem::copy_file(data("pooler/pooler.safetensors"), temp / "pooler.safetensors");
    EXPECT_EQ(import_pooler(temp / "pooler.safetensors").shape.heads, 8U);
    EXPECT_EQ(import_pooler(temp / "pooler.safetensors", 4).shape.heads, 4U);
}

TEST(ConvertPooler, MissingSurplusAndMisshapenTensorsAreNamed) {
    const TemporaryFolder temp;
    const auto path = temp / "p.safetensors";
    write_changed(
        path, [](auto& t) { std::erase_if(t, [](const auto& v) { return v.name == "blocks.1.lnk.bias"; }); });
    expect_error(ErrorCode::bad_file, {"p.safetensors", "blocks.1.lnk.bias", "missing"},
                 [&] { import_pooler(path); });
    write_changed(path, [](auto& t) { named(t, "blocks.1.lnk.bias").name = "blocks.1.lnk.bia"; });
    expect_error(ErrorCode::bad_file, {"blocks.1.lnk.bias", "missing"}, [&] { import_pooler(path); });
    write_changed(path, [](auto& t) { t.push_back(t.front()), t.back().name = "extra"; });
    expect_error(ErrorCode::bad_file, {"extra", "no part of a pooler"}, [&] { import_pooler(path); });
    write_changed(path, [](auto& t) { named(t, "ln_out.bias").shape = {4, 4}; });
    expect_error(ErrorCode::bad_file, {"ln_out.bias", "[4, 4]"}, [&] { import_pooler(path); });
    write_changed(path, [](auto& t) { named(t, "query").shape = {64}; });
    expect_error(ErrorCode::bad_file, {"query", "[64]"}, [&] { import_pooler(path); });
    write_changed(path,
                  [](auto& t) { std::erase_if(t, [](const auto& v) { return v.name == "out_scale"; }); });
    expect_error(ErrorCode::bad_file, {"out_scale"}, [&] { import_pooler(path); });
    const std::vector<float> bad(16, std::numeric_limits<float>::quiet_NaN());
    write_changed(path, [&](auto& t) { named(t, "ln_out.bias").data = std::as_bytes(std::span(bad)); });
    expect_error(ErrorCode::bad_file, {"ln_out.bias", "nan"}, [&] { import_pooler(path); });
}

TEST(ConvertPooler, DamagedFilesGiveErrorsThatNameThem) {
    const TemporaryFolder temp;
    for (const auto* name :
         {"pooler/pooler.safetensors", "pooler/pooler.pt", "pooler_4bit/pooler_4bit.safetensors"}) {
        const auto scratch = temp / std::filesystem::path(name).filename().string();
        test::Corruption corruption(data(name), scratch, [](const auto& path) { import_pooler(path); });
        const auto counts = corruption.run(150);
        EXPECT_EQ(counts.truncated_refused, counts.truncated) << name;
    }
}

} // namespace

} // namespace spool
