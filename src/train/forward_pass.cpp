#include "train/forward_pass.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace spool::train {

namespace {

/// Causal groups are padded to a multiple of this, so that traces of similar length share a part of the plan.
constexpr size_t length_step = 32;

Tensor to_tensor(const std::vector<int64_t>& values) {
    return at::tensor(at::ArrayRef<int64_t>(values), at::kLong);
}

} // namespace

ForwardPass::Group ForwardPass::pinned_rows(const TraceText& trace) const {
    Group group;
    for (size_t i = 0; i < trace.pinned; ++i) {
        group.push_back({.id = trace.tokens[i], .position = static_cast<int64_t>(i), .trace = traces_});
    }
    return group;
}

void ForwardPass::append_raw(Group& group, const TraceText& trace, size_t first, size_t end, int64_t position,
                             size_t predict_from) const {
    const auto raw = trace.raw();
    for (size_t t = first; t < end; ++t) {
        Row row{.id = raw[t], .position = position++, .trace = traces_, .token = t + 1};
        if (t + 1 < end && t + 1 >= predict_from) {
            row.target = raw[t + 1];
        }
        group.push_back(row);
    }
}

void ForwardPass::append_vectors(Group& group, const PlannedCompaction& compaction, int64_t position) {
    const auto first = static_cast<int64_t>(pools_.size()) * n_sp_;
    for (int64_t i = 0; i < n_sp_; ++i) {
        group.push_back({.position = position + i, .vector = first + i, .trace = traces_});
    }
    pools_.push_back({.trace = traces_, .kept = compaction.kept});
}

void ForwardPass::add_stretch(const TraceText& trace, size_t first, size_t end, size_t from) {
    Group group = pinned_rows(trace);
    if (!group.empty() && from <= first && first < end) {
        group.back().target = trace.raw()[first];
        group.back().token = first;
    }
    append_raw(group, trace, first, end, static_cast<int64_t>(trace.pinned), from);
    causal_.push_back(std::move(group));
    ++traces_;
}

void ForwardPass::add_carry(const TraceText& trace, const MemorySettings& settings,
                            const std::vector<PlannedCompaction>& compactions, bool vectors) {
    add_streamed(trace, {.vectors = vectors ? n_sp_ : 0U, .chunk = settings.chunk, .blocks = {}},
                 compactions);
}

void ForwardPass::add_slots(const TraceText& trace, const MemorySettings& settings,
                            const std::vector<PlannedCompaction>& compactions) {
    add_streamed(trace,
                 {.vectors = n_sp_,
                  .chunk = settings.chunk,
                  .live = std::max<size_t>(1, settings.max_slots / n_sp_),
                  .slots = true,
                  .blocks = {}},
                 compactions);
}

void ForwardPass::add_streamed(const TraceText& trace, StreamedTrace streamed,
                               const std::vector<PlannedCompaction>& compactions) {
    const size_t length = trace.raw().size();
    const auto pinned = static_cast<int64_t>(trace.pinned);
    streamed.head = causal_.size();
    streamed.pinned = trace.pinned;

    const size_t number = traces_;
    add_stretch(trace, 0, compactions.empty() ? length : compactions.front().raw_length, 0);
    traces_ = number;
    Row* before = &causal_.back().back();
    int64_t shift = 0; // positions that slots took so far
    for (size_t k = 0; k < compactions.size(); ++k) {
        const PlannedCompaction& compaction = compactions[k];
        const size_t end = k + 1 < compactions.size() ? compactions[k + 1].raw_length : length;
        // The first token of the chunk is chosen before the compaction.
        before->target = trace.raw()[compaction.raw_length];
        before->token = compaction.raw_length;
        Block block{.rows = {}, .compaction = compaction};
        const auto next = pinned + static_cast<int64_t>(compaction.raw_length);
        if (streamed.slots) {
            append_vectors(block.rows, compaction, next + shift);
            shift += n_sp_;
        } else if (streamed.vectors > 0) {
            append_vectors(block.rows, compaction,
                           pinned + static_cast<int64_t>(compaction.window_start) - n_sp_);
        }
        append_raw(block.rows, trace, compaction.raw_length, end, next + shift, 0);
        streamed.blocks.push_back(std::move(block));
        before = &streamed.blocks.back().rows.back();
    }
    streamed_.push_back(std::move(streamed));
    ++traces_;
}

void ForwardPass::add_rebuild(const TraceText& trace, const std::vector<PlannedCompaction>& compactions) {
    const size_t length = trace.raw().size();
    const size_t number = traces_;
    add_stretch(trace, 0, compactions.empty() ? length : compactions.front().raw_length, 0);
    traces_ = number;
    const auto pinned = static_cast<int64_t>(trace.pinned);
    for (size_t k = 0; k < compactions.size(); ++k) {
        const PlannedCompaction& compaction = compactions[k];
        const size_t end = k + 1 < compactions.size() ? compactions[k + 1].raw_length : length;
        Group group = pinned_rows(trace);
        append_vectors(group, compaction, pinned);
        append_raw(group, trace, compaction.window_start, end, pinned + n_sp_, compaction.raw_length);
        causal_.push_back(std::move(group));
    }
    ++traces_;
}

void ForwardPass::add_recital(const TraceText& trace, size_t first, size_t end) {
    PlannedCompaction everything{.raw_length = first, .window_start = first, .kept = {}};
    for (size_t t = first; t < end; ++t) {
        everything.kept.push_back(static_cast<uint32_t>(t));
    }
    const auto pinned = static_cast<int64_t>(trace.pinned);
    Group group = pinned_rows(trace);
    append_vectors(group, everything, pinned);
    group.back().target = trace.raw()[first];
    group.back().token = first;
    append_raw(group, trace, first, end, pinned + n_sp_, first);
    causal_.push_back(std::move(group));
    ++traces_;
}

void ForwardPass::place(const Group& group, size_t length) {
    for (const Row& row : group) {
        const auto at = static_cast<int64_t>(ids_.size());
        ids_.push_back(row.id);
        positions_.push_back(row.position);
        if (row.vector >= 0) {
            vector_rows_[static_cast<size_t>(row.vector)] = at;
        }
        if (row.target >= 0) {
            predictions_.push_back({.row = at, .target = row.target, .trace = row.trace, .token = row.token});
        }
    }
    ids_.resize(ids_.size() + length - group.size());
    positions_.resize(ids_.size());
}

void ForwardPass::place_causal_groups() {
    std::map<size_t, std::vector<size_t>> by_length;
    for (size_t g = 0; g < causal_.size(); ++g) {
        by_length[(causal_[g].size() + length_step - 1) / length_step * length_step].push_back(g);
    }
    causal_first_.resize(causal_.size());
    for (const auto& [length, groups] : by_length) {
        plan_.push_back({.first = static_cast<int64_t>(ids_.size()),
                         .groups = static_cast<int64_t>(groups.size()),
                         .queries = static_cast<int64_t>(length),
                         .keys = {},
                         .mask = {}});
        for (const size_t g : groups) {
            causal_first_[g] = static_cast<int64_t>(ids_.size());
            place(causal_[g], length);
        }
    }
}

size_t ForwardPass::StreamedTrace::oldest_seen(size_t k) const {
    if (slots) {
        return k > 0 ? blocks[k - 1].compaction.window_start : 0;
    }
    const size_t window_start = blocks[k].compaction.window_start;
    return window_start > chunk ? window_start - chunk : 0;
}

/// Key columns of a block: pinned rows, vectors, raw rows.
size_t ForwardPass::keys_of(const StreamedTrace& trace, size_t k) const {
    const Block& block = trace.blocks[k];
    return trace.pinned + trace.vectors * std::min(k + 1, trace.live + 1) +
           (block.compaction.raw_length - trace.oldest_seen(k)) + block.rows.size() - trace.vectors;
}

void ForwardPass::place_blocks() {
    size_t queries = 0;
    size_t keys = 0;
    size_t groups = 0;
    for (const StreamedTrace& trace : streamed_) {
        groups += trace.blocks.size();
        for (size_t k = 0; k < trace.blocks.size(); ++k) {
            queries = std::max(queries, trace.blocks[k].rows.size());
            keys = std::max(keys, keys_of(trace, k));
        }
    }
    if (groups == 0) {
        return;
    }
    const auto first = static_cast<int64_t>(ids_.size());
    for (const StreamedTrace& trace : streamed_) {
        for (const Block& block : trace.blocks) {
            place(block.rows, queries);
        }
    }

    std::vector<int64_t> key_rows(groups * keys, first);
    Tensor mask = at::zeros(
        {static_cast<int64_t>(groups), static_cast<int64_t>(queries), static_cast<int64_t>(keys)}, at::kBool);
    auto* seen = mask.mutable_data_ptr<bool>();
    size_t group = 0;
    for (const StreamedTrace& trace : streamed_) {
        const int64_t head = causal_first_[trace.head];
        const int64_t blocks_first = first + static_cast<int64_t>(group * queries);
        const auto block_row = [&](size_t block, size_t row) {
            return blocks_first + static_cast<int64_t>(block * queries + row);
        };
        for (size_t k = 0; k < trace.blocks.size(); ++k, ++group) {
            const PlannedCompaction& compaction = trace.blocks[k].compaction;
            const size_t boundary = trace.blocks[0].compaction.raw_length;
            const size_t rows = trace.blocks[k].rows.size();
            const size_t tokens = rows - trace.vectors;
            const size_t w0 = compaction.window_start;
            const auto raw_row = [&](size_t t) {
                return t < boundary ? head + static_cast<int64_t>(trace.pinned + t)
                                    : block_row((t - boundary) / trace.chunk,
                                                trace.vectors + (t - boundary) % trace.chunk);
            };
            const auto is_vector = [&](size_t q) { return q < trace.vectors; };
            size_t key = 0;
            // One key column: its row, and which of the block's queries see it.
            const auto add_key = [&](int64_t row, auto&& visible_to) {
                key_rows[group * keys + key] = row;
                for (size_t q = 0; q < rows; ++q) {
                    seen[(group * queries + q) * keys + key] = visible_to(q);
                }
                ++key;
            };
            for (size_t i = 0; i < trace.pinned; ++i) {
                add_key(head + static_cast<int64_t>(i), [](size_t) { return true; });
            }
            // Earlier vectors: a compaction's vectors see one group more than the raw tokens after it.
            for (size_t j = k - std::min(k, trace.live); j < k; ++j) {
                const bool outlives = j + trace.live > k;
                for (size_t i = 0; i < trace.vectors; ++i) {
                    add_key(block_row(j, i), [&](size_t q) { return outlives || is_vector(q); });
                }
            }
            for (size_t i = 0; i < trace.vectors; ++i) {
                add_key(block_row(k, i), [&](size_t q) { return q >= i; });
            }
            // Under carry the vectors do not see the tokens at whose positions they stand.
            const size_t vectors_see_to =
                trace.slots ? compaction.raw_length : w0 - std::min(w0, trace.vectors);
            for (size_t t = trace.oldest_seen(k); t < compaction.raw_length + tokens; ++t) {
                add_key(raw_row(t), [&](size_t q) {
                    return is_vector(q) ? t < vectors_see_to
                                        : t >= w0 && t <= compaction.raw_length + (q - trace.vectors);
                });
            }
            // Padding has to see something.
            for (size_t q = rows; q < queries; ++q) {
                seen[(group * queries + q) * keys] = true;
            }
        }
    }
    plan_.push_back({.first = first,
                     .groups = static_cast<int64_t>(groups),
                     .queries = static_cast<int64_t>(queries),
                     .keys = to_tensor(key_rows),
                     .mask = mask});
}

void ForwardPass::finish() {
    vector_rows_.resize(pools_.size() * n_sp_);
    place_causal_groups();
    place_blocks();
    causal_.clear();
    streamed_.clear();
}

} // namespace spool::train
