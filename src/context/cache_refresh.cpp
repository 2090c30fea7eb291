#include "context/cache_refresh.h"

#include <algorithm>

#include "core/error.h"

namespace spool {

Batch embedding_batch(std::span<const float> rows, int64_t width, Position first, SequenceId sequence) {
    Batch batch(width);
    const auto row = static_cast<size_t>(width);
    for (size_t i = 0; i * row < rows.size(); ++i) {
        batch.add(rows.subspan(i * row, row), first + static_cast<Position>(i), sequence, false);
    }
    return batch;
}

std::vector<float> rebuild_cache(Transcript& transcript, SequenceId sequence, Workspace& workspace,
                                 std::span<const float> soft_prompt) {
    Context& context = workspace.context;
    const int64_t width = context.model().facts().width;
    const auto pinned = static_cast<Position>(transcript.pinned);
    context.remove(sequence, pinned, -1);

    transcript.soft_prompt = static_cast<uint32_t>(soft_prompt.size() / static_cast<size_t>(width));
    transcript.position_offset = static_cast<int64_t>(transcript.pinned) + transcript.soft_prompt -
                                 static_cast<int64_t>(transcript.window_start);
    if (!soft_prompt.empty()) {
        Batch vectors = embedding_batch(soft_prompt, width, pinned, sequence);
        context.decode(vectors);
    }
    Batch window;
    for (size_t i = transcript.window_start; i < transcript.tokens.size(); ++i) {
        window.add(transcript.tokens[i], transcript.position(i), sequence, i + 1 == transcript.tokens.size());
    }
    context.decode(window);
    const auto logits = context.logits(window.size() - 1);
    return {logits.begin(), logits.end()};
}

void carry_cache(Transcript& transcript, SequenceId sequence, Workspace& workspace,
                 std::span<const float> soft_prompt, size_t chunk) {
    Context& context = workspace.context;
    const SequenceId scratch = workspace.scratch;
    const int64_t width = context.model().facts().width;
    const auto count = static_cast<uint32_t>(soft_prompt.size() / static_cast<size_t>(width));
    const auto pinned = static_cast<Position>(transcript.pinned);
    const Position window = transcript.position(transcript.window_start);
    const Position first = window - static_cast<Position>(count);
    const Position visible = std::max(window - static_cast<Position>(chunk), pinned);

    // The previous soft prompt ends where the previous window began, `chunk` tokens before this one.
    context.share(sequence, scratch, 0, pinned);
    if (transcript.soft_prompt > 0) {
        context.share(sequence, scratch, visible - static_cast<Position>(transcript.soft_prompt), visible);
    }
    context.share(sequence, scratch, visible, first);
    Batch vectors = embedding_batch(soft_prompt, width, first, scratch);
    try {
        context.decode(vectors);
    } catch (...) {
        context.remove(scratch, -1, -1);
        throw;
    }
    context.remove(sequence, pinned, window);
    context.share(scratch, sequence, first, window);
    context.remove(scratch, -1, -1);
    transcript.soft_prompt = count;
}

void drop_before_window(const Transcript& transcript, SequenceId sequence, Workspace& workspace) {
    workspace.context.remove(sequence, static_cast<Position>(transcript.pinned),
                             transcript.position(transcript.window_start));
}

} // namespace spool
