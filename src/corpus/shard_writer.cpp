#include "corpus/shard_writer.h"

#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "formats/safetensors.h"

namespace spool {

namespace {

template <typename T>
TensorView tensor(const char* name, DType dtype, const std::vector<int64_t>& shape,
                  const std::vector<T>& values) {
    return {.name = name, .dtype = dtype, .shape = shape, .data = std::as_bytes(std::span(values))};
}

} // namespace

ShardWriter::ShardWriter(std::filesystem::path folder, std::string split, std::string vocab_sha256,
                         size_t shard_tokens)
    : folder_(std::move(folder)), split_(std::move(split)), vocab_sha256_(std::move(vocab_sha256)),
      shard_tokens_(shard_tokens) {}

void ShardWriter::add(std::span<const Token> tokens, int32_t prompt, std::span<const Answer> answers) {
    if (!tokens_.empty() && tokens_.size() + tokens.size() > shard_tokens_) {
        flush();
    }
    const auto trace = static_cast<int32_t>(prompts_.size());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    starts_.push_back(static_cast<int64_t>(tokens_.size()));
    prompts_.push_back(prompt);
    for (const Answer& answer : answers) {
        answers_.insert(answers_.end(), {trace, answer.offset, answer.length, answer.distance});
    }
}

void ShardWriter::flush() {
    const std::string file = fmt::format("{}-{:05}.safetensors", split_, shards_.size());
    const auto count = static_cast<int64_t>(prompts_.size());
    write_safetensors(
        folder_ / file,
        {tensor("starts", DType::i64, {count + 1}, starts_),
         tensor("tokens", DType::i32, {static_cast<int64_t>(tokens_.size())}, tokens_),
         tensor("prompts", DType::i32, {count}, prompts_),
         tensor("answers", DType::i32, {static_cast<int64_t>(answers_.size() / 4), 4}, answers_)},
        {{"vocab_sha256", vocab_sha256_}, {"version", std::to_string(shards_version)}});
    shards_.push_back({{"file", file},
                       {"traces", count},
                       {"tokens", tokens_.size()},
                       {"sha256", sha256_file(folder_ / file)}});
    traces_ += prompts_.size();
    written_tokens_ += tokens_.size();
    tokens_.clear();
    starts_ = {0};
    prompts_.clear();
    answers_.clear();
}

Json ShardWriter::finish() {
    if (!prompts_.empty()) {
        flush();
    }
    return {{"traces", traces_}, {"tokens", written_tokens_}, {"shards", shards_}};
}

} // namespace spool
