// Corpora to token shards: the rules that every trace passes, and the bookkeeping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "corpus/encoder.h"
#include "corpus/shards.h"
#include "corpus/synthetic.h"
#include "formats/model_identity.h"

namespace spool {

struct PrepareOptions {
    std::filesystem::path destination;
    bool overwrite = false;
    BaseIdentity base; ///< of the model whose encoder is used
    int32_t vocab_size = 0;
    size_t min_tokens = 1024; ///< shorter traces, prompt and end token included, are left out
    size_t max_tokens = 0;    ///< longer ones too; 0: no bound
    double val_share = 0.02;  ///< of the prompts, by their hash
    size_t limit = 0;         ///< stop after that many traces; 0: all
    size_t shard_tokens = size_t{16} << 20U;
    size_t threads = 1; ///< for tokenising; what is written does not depend on it
    /// Called now and then with the bytes (natural) or samples (synthetic) done and their total; returning
    /// false stops (Error{interrupted}).
    std::function<bool(uint64_t done, uint64_t total)> on_progress;
};

struct Rejected {
    uint64_t count = 0;
    std::string example; ///< the first one: file, line and detail
};

struct PrepareReport {
    Json index; ///< as written to index.json
    std::map<std::string, Rejected> rejected;
};

/// The largest shard that may be asked for, in tokens.
constexpr size_t largest_shard = size_t{64} << 20U;

/// Reads `sources` (JSON Lines: plain, gzip, zstd; Parquet where built in) and writes options.destination,
/// which appears complete or not at all. Bad records and duplicates are counted by reason, beyond those of
/// traces_of(): not_json, duplicate, control_tokens, stray_tags, template_refuses, too_short, too_long.
/// Throws Error{invalid_argument|not_found|bad_file|io|interrupted}; bad_file also if no trace is left.
PrepareReport prepare(const std::vector<std::filesystem::path>& sources, const PrepareOptions& options,
                      const Encoder& encoder);

/// Writes `synthetic.samples` made-up traces instead. options.min_tokens, max_tokens and limit do not apply.
PrepareReport prepare(const SyntheticOptions& synthetic, const PrepareOptions& options,
                      const Encoder& encoder);

} // namespace spool
