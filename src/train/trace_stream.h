// The order in which traces are trained on: the same for the same seed, and resumable from four numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "corpus/shards.h"

namespace spool::train {

/// Endless: each folder's traces are dealt out in a new random order every epoch, folders in turn.
class TraceStream {
  public:
    /// Folders of one split. Throws what TokenShards throws, and Error{incompatible} if a folder is of
    /// another vocabulary than `vocab_sha256`, Error{invalid_argument} if one is empty.
    TraceStream(const std::vector<std::filesystem::path>& folders, const std::string& split,
                const std::string& vocab_sha256, uint64_t seed);

    TraceView next();

    Json state() const;
    void restore(const Json& state);

    size_t size() const;
    /// Trace i of all folders, one after the other.
    TraceView trace(size_t i) const;

  private:
    struct Source {
        std::unique_ptr<TokenShards> shards;
        uint64_t taken = 0;          ///< traces given so far
        uint64_t epoch = UINT64_MAX; ///< the epoch `order` is of
        std::vector<uint32_t> order{};
    };
    std::vector<Source> sources_;
    uint64_t seed_;
    uint64_t turn_ = 0;
};

} // namespace spool::train
