// Sessions that think on in one shared, fixed KV cache.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "context/shared_steps.h"
#include "context/strategy.h"
#include "memory/bundle.h"

namespace spool {

class SessionPool;

/// Asks for the logits of every token from transcript index `first` on: `visit` gets the index of a token and
/// the logits [n_vocab] that follow it.
struct LogitsVisitor {
    size_t first = 0;
    std::function<void(size_t index, std::span<const float> logits)> visit;
};

/// One conversation or chain of thought: a transcript and its part of the cache. Made by SessionPool::open(),
/// which must outlive it. One thread at a time drives a session; several threads may drive a pool's sessions
/// if each is a Participant.
class Session {
  public:
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Feeds tokens, compacting whenever the strategy asks for it; of any length. The first settings().pin
    /// tokens of the first call are pinned. `visitor`, for scoring, needs a pool made with
    /// PoolOptions::scoring. Throws Error{out_of_memory} when `full` has no cells left; the transcript then
    /// holds what was fed.
    void read(std::span<const Token> tokens, const LogitsVisitor* visitor = nullptr);

    /// [n_vocab] after the last token. Throws Error{invalid_argument} if nothing was read.
    std::span<const float> logits() const;
    const Transcript& transcript() const { return transcript_; }

    /// Cells in use now.
    size_t cells_used() const;
    /// Called after every compaction.
    std::function<void(const Compaction&)> on_compaction;

    /// Forgets everything, as if newly opened.
    void clear();
    /// What restore() needs, in libllama's own form.
    std::vector<std::byte> save_cache() const;
    /// Replaces transcript, cache and logits. Throws Error{bad_file} if libllama refuses `cache`; the session
    /// is then empty.
    void restore(Transcript transcript, std::span<const std::byte> cache, std::span<const float> logits);

  private:
    friend class SessionPool;
    Session(SessionPool& pool, SequenceId sequence) : pool_(&pool), sequence_(sequence) {}

    SessionPool* pool_;
    SequenceId sequence_;
    Transcript transcript_;
    std::vector<float> logits_;
};

struct PoolOptions {
    MemorySettings memory;
    uint32_t sessions = 1;
    int threads = 0; ///< 0: physical cores
    uint32_t batch = 512;
    ggml_type key_type = GGML_TYPE_F16;
    ggml_type value_type = GGML_TYPE_F16;
    bool flash_attention = true;
    /// KV cells; 0: what all sessions need at their peak.
    uint32_t cells = 0;
    /// Sessions will be read with a visitor: reserves output rows for a whole batch.
    bool scoring = false;
};

/// The memory a pool reserves, in bytes; fixed from the start.
struct PoolMemory {
    size_t model = 0;
    size_t kv = 0;
    size_t compute = 0;
    size_t pooler_weights = 0;
    size_t pooler_scratch = 0;
    uint32_t cells = 0;

    size_t total() const { return model + kv + compute + pooler_weights + pooler_scratch; }
};

class SessionPool {
  public:
    /// `bundle`: pooler and adapter, or nullptr. `model` must outlive the pool.
    SessionPool(const Model& model, const Bundle* bundle, const PoolOptions& options);
    ~SessionPool();
    SessionPool(const SessionPool&) = delete;
    SessionPool& operator=(const SessionPool&) = delete;

    /// Throws Error{out_of_memory} when all of options.sessions are open.
    std::unique_ptr<Session> open();

    /// Changes strategy and sizes for sessions opened from now on; none may be open. Throws
    /// Error{invalid_argument} if the cells there are do not suffice.
    void reconfigure(const MemorySettings& memory);
    /// For control experiments: the vectors of every compaction are replaced by `vectors`
    /// [vectors_per_compaction(), width] (not owned) before they enter the cache; nullptr ends it.
    void replace_soft_prompt(const std::vector<float>* vectors) { replacement_ = vectors; }

    /// Feeds several sessions in one decode of at most options.batch tokens: each session at most until its
    /// next compaction (step_limit), and each only once. Compactions that fall due happen before it returns.
    /// For one thread that drives all sessions; participants' tokens come here through Session::read().
    void feed(std::span<const Feed> feeds, const LogitsVisitor* visitor = nullptr);
    /// The most tokens feed() takes for this session now.
    size_t step_limit(const Session& session) const;

    const MemorySettings& settings() const { return strategy_->settings(); }
    const Strategy& strategy() const { return *strategy_; }
    const PoolOptions& options() const { return options_; }
    const PoolMemory& memory() const { return memory_; }
    const Model& model() const { return *model_; }
    Context& context() { return *context_; }
    Pooler* pooler() { return pooler_.get(); }
    /// Vectors that a compaction writes: the pooler's n_sp, or m slots; 0 without either.
    uint32_t vectors_per_compaction() const;

  private:
    friend class Session;
    friend class Participant;
    void compact(Session& session);
    void close(SequenceId sequence);

    const Model* model_;
    PoolOptions options_;
    MemoryWriters writers() const;

    std::unique_ptr<Pooler> pooler_;
    std::optional<SlotsFile> slots_;
    std::unique_ptr<Strategy> strategy_;
    std::unique_ptr<Context> context_;
    PoolMemory memory_;
    std::vector<bool> open_;
    const std::vector<float>* replacement_ = nullptr;
    Batch batch_;
    SharedSteps steps_; ///< last, so that its thread ends first
};

/// While it exists, the calling thread drives one of the pool's sessions, and its tokens share decodes with
/// those of all other participants. Each waits for the slowest, so nothing else should be waited for.
class Participant {
  public:
    explicit Participant(SessionPool& pool) : pool_(&pool) { pool_->steps_.join(); }
    ~Participant() { pool_->steps_.leave(); }
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;

  private:
    SessionPool* pool_;
};

} // namespace spool
