#include <fstream>

#include <gtest/gtest.h>

#include "convert/convert.h"
#include "convert/inspect.h"
#include "core/error.h"
#include "core/file.h"
#include "formats/safetensors.h"
#include "memory/bundle.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {

namespace {

using test::expect_error;
using test::fixture;
using test::TemporaryFolder;

std::filesystem::path data(const std::string& name) { return fixture("convert/data/" + name); }

/// A pooler and an adapter in one folder, as upstream keeps them.
std::filesystem::path upstream(const TemporaryFolder& temp) {
    const auto folder = temp / "upstream";
    std::filesystem::create_directories(folder);
    for (const auto* name : {"pooler.safetensors", "pooler_config.json"}) {
        std::filesystem::copy_file(data("pooler") / name, folder / name);
    }
    for (const auto* name : {"adapter_model.safetensors", "adapter_config.json"}) {
        std::filesystem::copy_file(data("llama-adapter") / name, folder / name);
    }
    return folder;
}

TEST(DetectSource, GoesByContent) {
    const TemporaryFolder temp;
    convert(data("llama"), temp / "m.gguf", {});
    convert(data("pooler/pooler.pt"), temp / "p.gguf", {});
    convert(data("llama-adapter"), temp / "l.gguf", {.base = temp / "m.gguf"});
    EXPECT_EQ(detect_source(temp / "m.gguf"), SourceKind::gguf_model);
    EXPECT_EQ(detect_source(temp / "p.gguf"), SourceKind::gguf_pooler);
    EXPECT_EQ(detect_source(temp / "l.gguf"), SourceKind::gguf_lora);
    EXPECT_EQ(detect_source(data("pooler/pooler.safetensors")), SourceKind::pooler_safetensors);
    EXPECT_EQ(detect_source(data("pooler/pooler.pt")), SourceKind::pooler_torch);
    EXPECT_EQ(detect_source(data("pooler")), SourceKind::upstream_bundle);
    EXPECT_EQ(detect_source(data("llama-adapter")), SourceKind::peft_adapter);
    EXPECT_EQ(detect_source(data("llama-adapter/adapter_model.safetensors")), SourceKind::peft_adapter);
    EXPECT_EQ(detect_source(data("llama")), SourceKind::hf_model);
    EXPECT_EQ(detect_source(data("llama-mlx")), SourceKind::mlx_model);
    EXPECT_EQ(detect_source(data("llama/golden.safetensors")), SourceKind::other_safetensors);
    std::filesystem::copy_file(data("pooler/pooler.pt"), temp / "no-extension");
    EXPECT_EQ(detect_source(temp / "no-extension"), SourceKind::pooler_torch);
}

TEST(DetectSource, WhatIsNotWhatItsNameSaysIsRefused) {
    const TemporaryFolder temp;
    std::filesystem::copy_file(data("pooler/pooler.pt"), temp / "pooler.safetensors");
    expect_error(ErrorCode::bad_file, {"pooler.safetensors", "torch.save", "safetensors file"},
                 [&] { detect_source(temp / "pooler.safetensors"); });
    std::filesystem::copy_file(data("pooler/pooler.safetensors"), temp / "model.gguf");
    expect_error(ErrorCode::bad_file, {"model.gguf", "a safetensors file", "GGUF"},
                 [&] { detect_source(temp / "model.gguf"); });
    write_text(temp / "empty.gguf", "");
    expect_error(ErrorCode::bad_file, {"empty.gguf"}, [&] { detect_source(temp / "empty.gguf"); });
    write_text(temp / "page.html", "<html>Entry not found</html>");
    expect_error(ErrorCode::bad_file, {"page.html"}, [&] { detect_source(temp / "page.html"); });
    std::filesystem::create_directories(temp / "folder");
    expect_error(ErrorCode::bad_file, {"folder", "bundle.json"}, [&] { detect_source(temp / "folder"); });
    expect_error(ErrorCode::not_found, {"nothing-here"}, [&] { detect_source(temp / "nothing-here"); });
}

TEST(Convert, DestinationMustFitTheSource) {
    const TemporaryFolder temp;
    const auto pooler = data("pooler/pooler.safetensors");
    expect_error(ErrorCode::invalid_argument, {"out.bin", "*.gguf"},
                 [&] { convert(pooler, temp / "out.bin", {}); });
    expect_error(ErrorCode::invalid_argument, {"--base"},
                 [&] { convert(data("llama-adapter"), temp / "l.gguf", {}); });
    expect_error(ErrorCode::invalid_argument, {"--base"},
                 [&] { convert(data("pooler"), temp / "bundle", {}); });
    expect_error(ErrorCode::invalid_argument, {"folder"},
                 [&] { convert(data("llama/golden.safetensors"), temp / "m.gguf", {}); });
    convert(data("llama"), temp / "m.gguf", {});
    expect_error(ErrorCode::invalid_argument, {"--type"},
                 [&] { convert(temp / "m.gguf", temp / "n.gguf", {}); });
    expect_error(ErrorCode::invalid_argument, {"same file"},
                 [&] { convert(temp / "m.gguf", temp / "m.gguf", {.type = GGML_TYPE_F32}); });
}

TEST(Convert, PoolerOfAnotherWidthThanTheModelIsRefused) {
    const TemporaryFolder temp;
    convert(data("llama"), temp / "m.gguf", {});
    expect_error(ErrorCode::incompatible, {"16 wide", "32 columns", "m.gguf"},
                 [&] { convert(upstream(temp), temp / "bundle", {.base = temp / "m.gguf"}); });
    EXPECT_FALSE(std::filesystem::exists(temp / "bundle"));
}

TEST(Convert, UpstreamFolderBecomesABundleAndComesBack) {
    const auto model = test::default_model();
    const auto source = test::shared_data("bundle-smollm2");
    if (!model || !source) {
        GTEST_SKIP() << "needs the default model and bundle-smollm2 (see tests/support/data.h)";
    }
    const TemporaryFolder temp;
    convert(*source, temp / "bundle",
            {.base = model, .trained = {.rw = 48, .chunk = 48, .layout = Layout::carry}});
    const Bundle bundle = read_bundle(temp / "bundle");
    EXPECT_TRUE(bundle.lora.has_value());
    EXPECT_EQ(bundle.base.architecture, "llama");
    EXPECT_EQ(bundle.base.vocab_sha256.size(), 64U);
    EXPECT_EQ(bundle.trained, (TrainedSettings{.rw = 48, .chunk = 48, .layout = Layout::carry}));
    EXPECT_EQ(read_pooler(bundle.pooler).trained, bundle.trained);
    EXPECT_TRUE(inspect(temp / "bundle").at("problem").is_null());

    convert(temp / "bundle", temp / "back", {});
    const SafetensorsFile a(*source / "pooler.safetensors");
    const SafetensorsFile b(temp / "back" / "pooler.safetensors");
    ASSERT_EQ(a.tensors().size(), b.tensors().size());
    for (const TensorView& tensor : a.tensors()) {
        EXPECT_EQ(to_float(b.at(tensor.name)), to_float(tensor)) << tensor.name;
    }
    EXPECT_TRUE(std::filesystem::exists(temp / "back" / "adapter_config.json"));
}

/// Every file of JSON that users bring along, with one byte changed at a time: converted or refused, no other
/// way out.
TEST(Convert, DamagedJsonGivesAnErrorOrAResult) {
    const TemporaryFolder temp;
    convert(data("llama"), temp / "m.gguf", {});
    const auto damage = [&](const std::string& folder, const std::string& name,
                            const std::string& destination) {
        const auto copy = temp / folder;
        std::filesystem::create_directories(copy);
        std::filesystem::copy(data(folder), copy,
                              std::filesystem::copy_options::recursive |
                                  std::filesystem::copy_options::overwrite_existing);
        const std::string whole = read_text(copy / name);
        size_t refused = 0;
        const size_t step = std::max<size_t>(1, whole.size() / 60);
        for (size_t at = 0; at < whole.size(); at += step) {
            for (const char byte : {'0', '"', ']'}) {
                std::string damaged = whole;
                damaged[at] = byte;
                std::ofstream(copy / name, std::ios::binary) << damaged;
                try {
                    convert(copy, temp / destination, {.base = temp / "m.gguf"});
                } catch (const Error&) {
                    ++refused;
                }
            }
        }
        EXPECT_GT(refused, 0U) << name;
    };
    damage("llama", "config.json", "n.gguf");
    damage("llama", "model.safetensors.index.json", "n.gguf");
    damage("llama", "tokenizer.json", "n.gguf");
    damage("llama", "tokenizer_config.json", "n.gguf");
    damage("llama-adapter", "adapter_config.json", "l.gguf");
    damage("pooler", "pooler_config.json", "bundle");
}

} // namespace

} // namespace spool
