#include "context/soft_prompt.h"

#include "context/cache_refresh.h"
#include "memory/distant_buffer.h"
#include "memory/schedule.h"

namespace spool {

namespace {

/// The pooler over the token rows of the distant buffer.
PoolResult pool_distant(const Transcript& transcript, Workspace& workspace) {
    std::vector<Token> ids;
    const PastRows rows = [&](size_t first, size_t count, float* out) {
        ids.resize(count);
        for (size_t j = 0; j < count; ++j) {
            ids[j] = transcript.tokens[transcript.distant[first + j]];
        }
        workspace.rows->read(ids, out);
    };
    return workspace.pooler->pool(transcript.distant.size(), rows);
}

} // namespace

uint32_t SoftPromptStrategy::peak_cells() const {
    const uint32_t vectors = settings_.refresh == Layout::carry ? 2 * n_sp_ : n_sp_;
    return settings_.pin + vectors + settings_.window + settings_.chunk;
}

size_t SoftPromptStrategy::next_compaction(size_t raw_length) const {
    return next_boundary(raw_length, settings_.chunk, idle_length(settings_, n_sp_));
}

Compaction SoftPromptStrategy::compact(Transcript& transcript, SequenceId sequence,
                                       Workspace& workspace) const {
    Compaction done;
    const Stopwatch pool_watch;
    move_to_distant(transcript, settings_.window);
    PoolResult pooled = pool_distant(transcript, workspace);
    if (transcript.distant.size() > settings_.max_distant) {
        // The masses of the overflowing buffer decide who leaves; the soft prompt is of those who stay.
        done.evicted = evict(transcript, pooled.mass, settings_.max_distant);
        pooled = pool_distant(transcript, workspace);
    }
    if (workspace.replacement != nullptr) {
        pooled.soft_prompt = *workspace.replacement;
    }
    done.pool_seconds = pool_watch.seconds();

    const Stopwatch refresh_watch;
    if (settings_.refresh == Layout::rebuild || must_rebase(transcript, settings_)) {
        done.logits = rebuild_cache(transcript, sequence, workspace, pooled.soft_prompt);
        done.rebuilt = true;
    } else {
        carry_cache(transcript, sequence, workspace, pooled.soft_prompt, settings_.chunk);
    }
    done.refresh_seconds = refresh_watch.seconds();
    done.length = transcript.tokens.size();
    done.kept = transcript.distant.size();
    done.window = transcript.window().size();
    return done;
}

} // namespace spool
