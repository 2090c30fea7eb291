#include "context/window.h"

#include "context/cache_refresh.h"
#include "memory/distant_buffer.h"
#include "memory/schedule.h"

namespace spool {

uint32_t WindowStrategy::peak_cells() const { return settings_.pin + settings_.window + settings_.chunk; }

size_t WindowStrategy::next_compaction(size_t raw_length) const {
    return next_boundary(raw_length, settings_.chunk, settings_.window);
}

Compaction WindowStrategy::compact(Transcript& transcript, SequenceId sequence, Workspace& workspace) const {
    const Stopwatch watch;
    Compaction done;
    const size_t before = transcript.window_start;
    move_to_distant(transcript, settings_.window);
    done.evicted = transcript.window_start - before;
    transcript.evicted += done.evicted;
    transcript.distant.clear();
    if (must_rebase(transcript, settings_)) {
        done.logits = rebuild_cache(transcript, sequence, workspace, {});
        done.rebuilt = true;
    } else {
        drop_before_window(transcript, sequence, workspace);
    }
    done.length = transcript.tokens.size();
    done.window = transcript.window().size();
    done.refresh_seconds = watch.seconds();
    return done;
}

} // namespace spool
