#include "context/slots.h"

#include <algorithm>

#include "context/cache_refresh.h"
#include "memory/distant_buffer.h"
#include "memory/schedule.h"

namespace spool {

namespace {

/// Drops raw tokens [first, last) from the cache, and not the slots that stand among them.
void drop_tokens(const Transcript& transcript, size_t first, size_t last, SequenceId sequence,
                 Context& context) {
    while (first < last) {
        const auto group = std::ranges::upper_bound(transcript.slots, first);
        const size_t end = group == transcript.slots.end() ? last : std::min<size_t>(last, *group);
        const Position begin = transcript.position(first);
        context.remove(sequence, begin, begin + static_cast<Position>(end - first));
        first = end;
    }
}

/// The first position of the oldest group in the cache.
Position oldest_slot(const Transcript& transcript) {
    return transcript.position(transcript.slots[transcript.slots_gone]) -
           static_cast<Position>(transcript.slots_in_group);
}

void drop_oldest_group(Transcript& transcript, SequenceId sequence, Context& context) {
    const Position first = oldest_slot(transcript);
    context.remove(sequence, first, first + static_cast<Position>(transcript.slots_in_group));
    ++transcript.slots_gone;
}

/// Groups that have left and that stood before the window are accounted for in the offset.
void forget_gone_groups(Transcript& transcript) {
    while (transcript.slots_gone > 0 && transcript.slots.front() <= transcript.window_start) {
        transcript.slots.erase(transcript.slots.begin());
        transcript.position_offset += transcript.slots_in_group;
        --transcript.slots_gone;
    }
}

/// What stands first after the pinned tokens moves to the position right after them, all else along with it.
void rebase(Transcript& transcript, SequenceId sequence, Context& context) {
    Position first = transcript.position(transcript.window_start);
    if (transcript.slot_groups() > 0) {
        first = std::min(first, oldest_slot(transcript));
    }
    const Position shift = first - static_cast<Position>(transcript.pinned);
    context.shift(sequence, first, -shift);
    transcript.position_offset -= shift;
}

} // namespace

uint32_t SlotsStrategy::peak_cells() const {
    return settings_.pin + settings_.max_slots + count_ + settings_.window + settings_.chunk;
}

size_t SlotsStrategy::next_compaction(size_t raw_length) const {
    return next_boundary(raw_length, settings_.chunk, idle_length(settings_, count_));
}

Compaction SlotsStrategy::compact(Transcript& transcript, SequenceId sequence, Workspace& workspace) const {
    const Stopwatch watch;
    Compaction done;
    Context& context = workspace.context;
    Batch vectors =
        embedding_batch(workspace.replacement != nullptr ? *workspace.replacement : workspace.slots,
                        context.model().facts().width, transcript.next_position(), sequence);
    context.decode(vectors);
    transcript.slots_in_group = count_;
    transcript.slots.push_back(static_cast<uint32_t>(transcript.tokens.size()));

    const size_t before = transcript.window_start;
    move_to_distant(transcript, settings_.window);
    transcript.distant.clear();
    drop_tokens(transcript, before, transcript.window_start, sequence, context);
    while (transcript.slot_cells() > settings_.max_slots) {
        drop_oldest_group(transcript, sequence, context);
        done.evicted += settings_.chunk;
    }
    transcript.evicted += done.evicted;
    forget_gone_groups(transcript);
    if (must_rebase(transcript, settings_)) {
        rebase(transcript, sequence, context);
        done.rebuilt = true;
    }
    done.length = transcript.tokens.size();
    done.kept = transcript.slot_groups() * settings_.chunk;
    done.window = transcript.window().size();
    done.refresh_seconds = watch.seconds();
    return done;
}

} // namespace spool
