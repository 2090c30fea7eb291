// Short training runs of a tiny random model on random traces, started as programs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/random.h"
#include "formats/gguf.h"
#include "formats/model_identity.h"
#include "formats/safetensors.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"

namespace spool::train {

constexpr int64_t tiny_vocab = 64;

/// A model of one layer with random weights, and as many words as it has tokens.
inline void write_tiny_model(const std::filesystem::path& path) {
    GgufWriter writer;
    const std::string name = "llama";
    writer.set("general.architecture", name);
    writer.set("llama.block_count", uint32_t{1});
    writer.set("llama.embedding_length", uint32_t{32});
    writer.set("llama.attention.head_count", uint32_t{4});
    writer.set("llama.attention.head_count_kv", uint32_t{2});
    writer.set("llama.feed_forward_length", uint32_t{64});
    writer.set("llama.context_length", uint32_t{512});
    writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    std::vector<std::string> words;
    words.reserve(tiny_vocab);
    for (int64_t i = 0; i < tiny_vocab; ++i) {
        words.push_back("w" + std::to_string(i));
    }
    writer.set("tokenizer.ggml.tokens", GgufArray(words));
    Random random(3);
    std::vector<std::vector<float>> data;
    data.reserve(32);
    const auto add = [&](const std::string& tensor, std::vector<int64_t> ne, bool ones = false) {
        int64_t count = 1;
        for (const int64_t size : ne) {
            count *= size;
        }
        data.emplace_back(static_cast<size_t>(count), 1.0F);
        if (!ones) {
            for (float& value : data.back()) {
                value = static_cast<float>(random.normal() * 0.2);
            }
        }
        writer.add(tensor, GGML_TYPE_F32, std::move(ne), std::as_bytes(std::span(data.back())));
    };
    add("token_embd.weight", {32, tiny_vocab});
    add("output_norm.weight", {32}, true);
    add("blk.0.attn_norm.weight", {32}, true);
    add("blk.0.ffn_norm.weight", {32}, true);
    add("blk.0.attn_q.weight", {32, 32});
    add("blk.0.attn_k.weight", {32, 16});
    add("blk.0.attn_v.weight", {32, 16});
    add("blk.0.attn_output.weight", {32, 32});
    add("blk.0.ffn_gate.weight", {32, 64});
    add("blk.0.ffn_up.weight", {32, 64});
    add("blk.0.ffn_down.weight", {64, 32});
    writer.write(path);
}

/// A folder of shards as spool prepare would write it, of random traces.
inline void write_shards(const std::filesystem::path& folder, const std::string& vocab_hash) {
    std::filesystem::create_directories(folder);
    Json splits = Json::object();
    for (const std::string split : {"train", "val"}) {
        Random random(split == "train" ? 5 : 6);
        std::vector<Token> tokens;
        std::vector<int64_t> starts = {0};
        std::vector<int32_t> prompts;
        for (int trace = 0; trace < 12; ++trace) {
            const size_t length = 60 + random.below(40);
            for (size_t i = 0; i < length; ++i) {
                tokens.push_back(static_cast<Token>(random.below(tiny_vocab)));
            }
            starts.push_back(static_cast<int64_t>(tokens.size()));
            prompts.push_back(5);
        }
        const auto view = [](const std::string& name, DType type, std::vector<int64_t> shape, auto& values) {
            return TensorView{name, type, std::move(shape), std::as_bytes(std::span(values))};
        };
        const std::vector<int32_t> none;
        const std::string file = split + "-00000.safetensors";
        write_safetensors(folder / file,
                          {view("tokens", DType::i32, {static_cast<int64_t>(tokens.size())}, tokens),
                           view("starts", DType::i64, {static_cast<int64_t>(starts.size())}, starts),
                           view("prompts", DType::i32, {static_cast<int64_t>(prompts.size())}, prompts),
                           view("answers", DType::i32, {0, 4}, none)},
                          {{"vocab_sha256", vocab_hash}, {"version", "1"}});
        splits[split] = {
            {"traces", prompts.size()},
            {"tokens", tokens.size()},
            {"shards",
             {{{"file", file}, {"traces", prompts.size()}, {"tokens", tokens.size()}, {"sha256", ""}}}}};
    }
    const Json index = {
        {"format", "spool-shards"},
        {"version", 1},
        {"base",
         {{"architecture", "llama"}, {"name", ""}, {"vocab_sha256", vocab_hash}, {"vocab_size", tiny_vocab}}},
        {"splits", splits},
        {"rejected", Json::object()},
        {"settings", Json::object()}};
    write_text(folder / "index.json", index.dump());
}

class TinyRun : public ::testing::Test {
  protected:
    void SetUp() override {
        write_tiny_model(folder_ / "model.gguf");
        write_shards(folder_ / "shards", vocab_sha256(GgufFile(folder_ / "model.gguf")));
    }

    std::vector<std::string> arguments(const std::string& out, int steps) const {
        return {"run",
                "--model",
                (folder_ / "model.gguf").string(),
                "--data",
                (folder_ / "shards").string(),
                "--out",
                (folder_ / out).string(),
                "--steps",
                std::to_string(steps),
                "--window-max",
                "12",
                "--window-min",
                "6",
                "--chunk",
                "8",
                "--n-sp",
                "4",
                "--pooler-heads",
                "4",
                "--pooler-layers",
                "1",
                "--pooler-ffn",
                "32",
                "--rank",
                "2",
                "--batch-tokens",
                "200",
                "--eval-every",
                "7",
                "--eval-traces",
                "2",
                "--save-every",
                "5",
                "--threads",
                "1",
                "--json"};
    }

    std::map<std::string, Tensor> weights(const std::string& out, uint64_t step) const {
        return read_checkpoint(checkpoint_path(folder_ / out, step)).tensors;
    }

    static void expect_equal(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
        ASSERT_EQ(a.size(), b.size());
        for (const auto& [name, tensor] : a) {
            EXPECT_TRUE(at::equal(tensor, b.at(name))) << name;
        }
    }

    test::TemporaryFolder folder_;
};

} // namespace spool::train
