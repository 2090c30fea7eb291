// Evaluation records: token ids of a trace cut into what is pinned, distant, recent and to be predicted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/token.h"

namespace spool {

struct Record {
    std::string id;
    std::vector<Token> prompt;  ///< pinned
    std::vector<Token> distant; ///< what a window does not see
    std::vector<Token> recent;  ///< the window
    std::vector<Token> target;  ///< the tokens whose cross-entropy counts
    Json source;                ///< the whole object, for fields this struct does not know
};

/// Reads JSON Lines (plain or gzip) of objects with prompt, distant, recent, target (arrays of token ids) and
/// optionally id. Throws Error{bad_file} naming file, line and field: a missing array, an id outside
/// [0, vocab_size), an empty recent or target.
std::vector<Record> read_records(const std::filesystem::path& path, int32_t vocab_size);

} // namespace spool
