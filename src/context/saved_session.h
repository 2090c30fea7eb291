// What a session file holds (docs/formats.md), read and checked without the model it belongs to.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/json.h"
#include "formats/gguf.h"
#include "memory/transcript.h"

namespace spool {

/// `general.architecture` of a session file, and the only `spool.version` this spool writes and reads.
constexpr std::string_view session_architecture = "spool-session";
constexpr uint32_t session_version = 2;

struct SavedSession {
    Json identity; ///< flat: model, fingerprint, bundle, strategy and sizes, as the run that saved had them
    Json chat;     ///< what the program that saved it added, or null
    Transcript transcript;
    std::vector<float> logits;        ///< [n_vocab], after the last token
    std::span<const std::byte> cache; ///< libllama's own state; a view into the file
};

/// The file's content, checked against itself: no index in the transcript is out of range, every token is in
/// the vocabulary that the logits cover, the cache has the hash that was saved.
/// Throws Error{bad_file}, naming what contradicts what. `file` must outlive the result's cache.
SavedSession read_saved_session(const GgufFile& file);

} // namespace spool
