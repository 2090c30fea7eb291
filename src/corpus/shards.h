// Token shards: what `spool prepare` writes and a trainer reads, memory-mapped (docs/formats.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/token.h"
#include "formats/safetensors.h"

namespace spool {

/// Version of index.json and of the shards' metadata.
constexpr uint32_t shards_version = 1;

/// Tokens of a synthetic trace that can only be known from something stated earlier in it.
struct Answer {
    int32_t offset;   ///< of the first token, counted from the trace's start
    int32_t length;   ///< tokens
    int32_t distance; ///< tokens from the end of the fact's statement to `offset`
};

/// One trace. `tokens` points into the mapped file and lives as long as the TokenShards it came from.
struct TraceView {
    std::span<const Token> tokens; ///< the rendered prompt, then the reply, then the end token
    int32_t prompt = 0;            ///< leading tokens that are the prompt up to and with the reply's start
    std::vector<Answer> answers;   ///< by offset; empty for natural traces
};

/// One split of a folder of shards. Reading from several threads is safe.
class TokenShards {
  public:
    /// Maps every shard of `split` ("train" or "val"; a split may hold no traces). Checked here: the index,
    /// every size, offset, prompt length and answer. Throws Error{not_found|io|bad_file|unsupported} naming
    /// file and field.
    TokenShards(const std::filesystem::path& folder, const std::string& split);

    /// Traces in the split.
    size_t size() const { return size_; }
    /// 0 <= i < size(). Throws Error{invalid_argument} beyond; Error{bad_file} if an id of the trace is
    /// outside the vocabulary.
    TraceView trace(size_t i) const;

    /// Of the model whose ids these are, as pooler.gguf states it.
    const std::string& vocab_sha256() const { return vocab_sha256_; }
    int32_t vocab_size() const { return vocab_size_; }
    /// Of all traces of the split, prompts included.
    uint64_t tokens() const { return tokens_; }

  private:
    struct Shard {
        SafetensorsFile file;
        size_t first = 0;                 ///< index of its first trace in the split
        std::span<const Token> tokens;    ///< [T]
        std::span<const int64_t> starts;  ///< [N + 1]
        std::span<const int32_t> prompts; ///< [N]
        std::span<const int32_t> answers; ///< [A * 4]: trace, offset, length, distance

        size_t traces() const { return prompts.size(); }
    };
    Shard open_shard(const std::filesystem::path& path) const;
    static void check_traces(const Shard& shard);
    static void check_answers(const Shard& shard);

    std::vector<Shard> shards_;
    size_t size_ = 0;
    uint64_t tokens_ = 0;
    std::string vocab_sha256_;
    int32_t vocab_size_ = 0;
};

} // namespace spool
