// The two ways a compaction brings the KV cache in line with the transcript.
#pragma once

#include <span>
#include <vector>

#include "context/strategy.h"

namespace spool {

/// `rows` [n, width] as embeddings at positions first, first + 1, ...
Batch embedding_batch(std::span<const float> rows, int64_t width, Position first, SequenceId sequence);

/// Cuts the cache to the pinned tokens and prefills [soft prompt | window] again at consecutive positions.
/// `soft_prompt`: [n, width] or empty. Sets soft_prompt and position_offset of the transcript and returns the
/// logits of the window's last token.
std::vector<float> rebuild_cache(Transcript& transcript, SequenceId sequence, Workspace& workspace,
                                 std::span<const float> soft_prompt);

/// Replaces the cached soft prompt without touching the window: decodes `soft_prompt` ([n, width]) at the n
/// positions before the window, where it sees the pinned tokens, the previous soft prompt and the raw tokens
/// [window_start - chunk, window_start - n) that are about to go; then drops everything between the pinned
/// tokens and the window but the new vectors.
void carry_cache(Transcript& transcript, SequenceId sequence, Workspace& workspace,
                 std::span<const float> soft_prompt, size_t chunk);

/// Drops the cells between the pinned tokens and the window; positions stay.
void drop_before_window(const Transcript& transcript, SequenceId sequence, Workspace& workspace);

} // namespace spool
