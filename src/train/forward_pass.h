// One forward pass over one or several traces: which rows it reads, which of them each row may see, and what
// each should predict. The rows of all traces lie in one sequence; the attention plan keeps the traces apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/token.h"
#include "memory/schedule.h"
#include "train/attention.h"

namespace spool::train {

/// A trace as the engine would read it: the first `pinned` tokens never leave the cache. Raw token t is
/// tokens[pinned + t].
struct TraceText {
    std::span<const Token> tokens;
    size_t pinned = 0;

    std::span<const Token> raw() const { return tokens.subspan(pinned); }
};

/// Soft-prompt vectors that the pass needs: the pooler over raw tokens `kept` of trace number `trace`.
struct PoolTask {
    size_t trace = 0;
    std::vector<uint32_t> kept;
};

/// A row whose logits count: it predicts raw token `token` of trace number `trace`.
struct Prediction {
    int64_t row = 0;
    int64_t target = 0;
    size_t trace = 0;
    size_t token = 0;
};

class ForwardPass {
  public:
    /// `vectors`: how many each compaction writes, n_sp of a soft prompt or m slots.
    explicit ForwardPass(uint32_t vectors) : n_sp_(vectors) {}

    // Each add_ is one trace, numbered in order.

    /// [pinned | raw tokens [first, end)] at consecutive positions in one causal stretch; predicts raw tokens
    /// [from, end).
    void add_stretch(const TraceText& trace, size_t first, size_t end, size_t from);
    /// The whole trace as `carry` reads it: natural positions, the vectors of compaction k in front of the
    /// tokens read after it. Predicts every raw token. Without `vectors` they are left out: a window,
    /// streamed.
    void add_carry(const TraceText& trace, const MemorySettings& settings,
                   const std::vector<PlannedCompaction>& compactions, bool vectors = true);
    /// The whole trace as `slots` reads it: the vectors of compaction k follow the text read before it, see
    /// the pinned rows, earlier slots and all that was in the window since compaction k-1, and are seen by
    /// all later rows until settings.max_slots newer ones are there. Predicts every raw token.
    void add_slots(const TraceText& trace, const MemorySettings& settings,
                   const std::vector<PlannedCompaction>& compactions);
    /// The whole trace as `rebuild` reads it: one stretch up to the first compaction, then for each chunk
    /// [pinned | vectors | window | chunk] at consecutive positions. Predicts every raw token once.
    void add_rebuild(const TraceText& trace, const std::vector<PlannedCompaction>& compactions);
    /// [pinned | vectors of raw tokens [first, end) | these tokens]: the vectors alone let the model recite
    /// them. Predicts all of [first, end).
    void add_recital(const TraceText& trace, size_t first, size_t end);
    /// After the last trace: lays the rows out and makes the plan.
    void finish();

    const std::vector<int64_t>& ids() const { return ids_; } ///< 0 at vectors' rows and padding
    const std::vector<int64_t>& positions() const { return positions_; }
    /// The rows of the vectors: n_sp for each of pools(), in order.
    const std::vector<int64_t>& vector_rows() const { return vector_rows_; }
    const std::vector<PoolTask>& pools() const { return pools_; }
    const std::vector<Prediction>& predictions() const { return predictions_; }
    const AttentionPlan& plan() const { return plan_; }

  private:
    struct Row {
        int64_t id = 0;
        int64_t position = 0;
        int64_t vector = -1; ///< which of all pools' vectors
        int64_t target = -1;
        size_t trace = 0;
        size_t token = 0; ///< the raw token it predicts
    };
    using Group = std::vector<Row>;
    /// The rows read after a compaction under carry or slots.
    struct Block {
        Group rows; ///< vectors, then tokens
        PlannedCompaction compaction;
    };
    /// A trace read block by block, each block seeing rows of earlier ones.
    struct StreamedTrace {
        /// Index of the causal group that holds pinned tokens and all before the first compaction.
        size_t head = 0;
        size_t pinned = 0;
        size_t vectors = 0;
        size_t chunk = 0;
        size_t live = 1; ///< compactions whose vectors a raw token sees, its own block's the last
        bool slots = false;
        std::vector<Block> blocks;

        /// The first raw token that the vectors of block k see.
        size_t oldest_seen(size_t k) const;
    };

    Group pinned_rows(const TraceText& trace) const;
    void append_raw(Group& group, const TraceText& trace, size_t first, size_t end, int64_t position,
                    size_t predict_from) const;
    void append_vectors(Group& group, const PlannedCompaction& compaction, int64_t position);
    void place(const Group& group, size_t length);
    void place_causal_groups();
    void add_streamed(const TraceText& trace, StreamedTrace streamed,
                      const std::vector<PlannedCompaction>& compactions);
    size_t keys_of(const StreamedTrace& trace, size_t block) const;
    void place_blocks();

    uint32_t n_sp_;
    size_t traces_ = 0;
    std::vector<Group> causal_;
    std::vector<int64_t> causal_first_; ///< row of each causal group
    std::vector<StreamedTrace> streamed_;

    std::vector<int64_t> ids_;
    std::vector<int64_t> positions_;
    std::vector<int64_t> vector_rows_;
    std::vector<PoolTask> pools_;
    std::vector<Prediction> predictions_;
    AttentionPlan plan_;
};

} // namespace spool::train
