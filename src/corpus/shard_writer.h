// Writing token shards: the traces of one split, cut into files of bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/json.h"
#include "corpus/shards.h"

namespace spool {

class ShardWriter {
  public:
    /// Writes `folder`/`split`-00000.safetensors and so on. A shard holds at most `shard_tokens` tokens, or
    /// one trace that is longer by itself; that much is kept in memory.
    ShardWriter(std::filesystem::path folder, std::string split, std::string vocab_sha256,
                size_t shard_tokens);

    /// `tokens` must not be empty and `prompt` not exceed it; answers by offset.
    void add(std::span<const Token> tokens, int32_t prompt, std::span<const Answer> answers);
    /// Writes what is left. Returns the split's entry in index.json: {traces, tokens, shards}.
    Json finish();

    uint64_t traces() const { return traces_ + prompts_.size(); }
    uint64_t tokens() const { return written_tokens_ + tokens_.size(); }

  private:
    void flush();

    std::filesystem::path folder_;
    std::string split_;
    std::string vocab_sha256_;
    size_t shard_tokens_;
    uint64_t traces_ = 0; ///< in shards already written
    uint64_t written_tokens_ = 0;
    Json shards_ = Json::array();
    std::vector<Token> tokens_;
    std::vector<int64_t> starts_ = {0};
    std::vector<int32_t> prompts_;
    std::vector<int32_t> answers_; ///< [A * 4]
};

} // namespace spool
