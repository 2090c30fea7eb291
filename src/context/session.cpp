#include "context/session.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "llm/backend.h"

namespace spool {

Session::~Session() { pool_->close(sequence_); }

void Session::read(std::span<const Token> tokens, const LogitsVisitor* visitor) {
    if (tokens.empty()) {
        return;
    }
    if (transcript_.tokens.empty()) {
        transcript_.pinned = std::min<size_t>(pool_->settings().pin, tokens.size());
        transcript_.window_start = transcript_.pinned;
    }
    while (!tokens.empty()) {
        const size_t limit = pool_->step_limit(*this);
        if (limit == 0) {
            fail(ErrorCode::out_of_memory,
                 "--strategy full: all {} cells of this session are used; pass a larger --ctx-size, or "
                 "another "
                 "strategy",
                 pool_->settings().full_length);
        }
        const auto step = tokens.first(std::min(tokens.size(), limit));
        const Feed feed{this, step};
        if (visitor != nullptr) {
            pool_->feed(std::span(&feed, 1), visitor);
        } else {
            pool_->steps_.feed(feed);
        }
        tokens = tokens.subspan(step.size());
    }
}

std::span<const float> Session::logits() const {
    if (logits_.empty()) {
        fail(ErrorCode::invalid_argument,
             "the session has read nothing yet, so there is no next token to choose");
    }
    return logits_;
}

size_t Session::cells_used() const {
    return transcript_.pinned + transcript_.soft_prompt + transcript_.slot_cells() +
           transcript_.window().size();
}

void Session::clear() {
    const std::scoped_lock lock(pool_->steps_.mutex());
    pool_->context_->remove(sequence_, -1, -1);
    transcript_ = {};
    logits_.clear();
}

std::vector<std::byte> Session::save_cache() const {
    const std::scoped_lock lock(pool_->steps_.mutex());
    return pool_->context_->save_sequence(sequence_);
}

void Session::restore(Transcript transcript, std::span<const std::byte> cache,
                      std::span<const float> logits) {
    transcript_ = {};
    logits_.clear();
    const std::scoped_lock lock(pool_->steps_.mutex());
    pool_->context_->load_sequence(sequence_, cache);
    transcript_ = std::move(transcript);
    logits_.assign(logits.begin(), logits.end());
}

SessionPool::SessionPool(const Model& model, const Bundle* bundle, const PoolOptions& options)
    : model_(&model), options_(options),
      steps_([this](std::span<const Feed> feeds) { feed(feeds); }, options.batch) {
    const int threads = options.threads > 0 ? options.threads : physical_cores();
    if (bundle != nullptr && options.memory.strategy == StrategyKind::slots && !bundle->slots.empty()) {
        slots_ = read_slots(bundle->slots);
        if (ggml_is_quantized(options.key_type)) {
            fail(ErrorCode::unsupported,
                 "--cache-type-k {}: --strategy slots moves keys to other positions, which would round "
                 "quantised "
                 "ones again; use f16",
                 ggml_type_name(options.key_type));
        }
    }
    if (bundle != nullptr && options.memory.strategy == StrategyKind::soft_prompt &&
        !bundle->pooler.empty()) {
        PoolerWeights weights = read_pooler(bundle->pooler).weights;
        for (const auto& [name, values] : weights.tensors) {
            memory_.pooler_weights += values.size() * sizeof(float);
        }
        pooler_ = std::make_unique<Pooler>(std::move(weights), threads);
        memory_.pooler_scratch = pooler_->scratch_bytes();
    }
    strategy_ = make_strategy(options.memory, model, writers());

    const uint64_t needed = uint64_t{strategy_->peak_cells()} * options.sessions;
    const uint64_t cells = options.cells > 0 ? options.cells : needed;
    if (options.sessions == 0 || cells > (uint64_t{1} << 31U) || cells < needed) {
        fail(ErrorCode::invalid_argument, "{} sessions of {} cells cannot share one cache", options.sessions,
             strategy_->peak_cells());
    }
    ContextOptions context;
    context.cells = static_cast<uint32_t>(cells);
    context.sequences = options.sessions + 1;
    context.batch = options.batch;
    context.outputs = options.scoring ? 0 : context.sequences; // libllama wants one a sequence at least
    context.threads = threads;
    context.key_type = options.key_type;
    context.value_type = options.value_type;
    context.flash_attention = options.flash_attention;
    context_ = std::make_unique<Context>(model, context);
    if (bundle != nullptr && bundle->lora) {
        context_->apply_adapter(bundle->lora->string());
    }
    memory_.model = context_->memory().model;
    memory_.kv = context_->memory().kv;
    memory_.compute = context_->memory().compute;
    memory_.cells = context_->cells();
    open_.assign(options.sessions, false);
}

SessionPool::~SessionPool() = default;

MemoryWriters SessionPool::writers() const {
    return {.pooler = pooler_ ? &pooler_->shape() : nullptr, .slots = slots_ ? &*slots_ : nullptr};
}

uint32_t SessionPool::vectors_per_compaction() const {
    return pooler_ ? pooler_->shape().n_sp : slots_ ? slots_->count : 0;
}

void SessionPool::reconfigure(const MemorySettings& memory) {
    if (std::ranges::find(open_, true) != open_.end()) {
        fail(ErrorCode::invalid_argument, "the memory settings cannot change while sessions are open");
    }
    auto strategy = make_strategy(memory, *model_, writers());
    if (uint64_t{strategy->peak_cells()} * open_.size() > memory_.cells) {
        fail(ErrorCode::invalid_argument, "{} sessions of {} cells do not fit the cache of {} cells",
             open_.size(), strategy->peak_cells(), memory_.cells);
    }
    strategy_ = std::move(strategy);
}

std::unique_ptr<Session> SessionPool::open() {
    const std::scoped_lock lock(steps_.mutex());
    const auto free = std::ranges::find(open_, false);
    if (free == open_.end()) {
        fail(ErrorCode::out_of_memory, "all {} sessions are in use", open_.size());
    }
    *free = true;
    return std::unique_ptr<Session>(new Session(*this, static_cast<SequenceId>(free - open_.begin())));
}

void SessionPool::close(SequenceId sequence) {
    const std::scoped_lock lock(steps_.mutex());
    context_->remove(sequence, -1, -1);
    open_[static_cast<size_t>(sequence)] = false;
}

size_t SessionPool::step_limit(const Session& session) const {
    const size_t length = session.transcript_.raw_length();
    const size_t pinned = session.transcript_.pinned;
    const size_t pinned_left = pinned - std::min(pinned, session.transcript_.tokens.size());
    const size_t due = strategy_->next_compaction(length);
    if (due == Strategy::never) {
        const size_t used = session.transcript_.tokens.size();
        return std::min<size_t>(options_.batch,
                                strategy_->peak_cells() - std::min<size_t>(used, strategy_->peak_cells()));
    }
    const size_t until_due = due - length;
    return std::min<size_t>(options_.batch, until_due + pinned_left);
}

void SessionPool::feed(std::span<const Feed> feeds, const LogitsVisitor* visitor) {
    batch_.clear();
    for (const auto& [session, tokens] : feeds) {
        Transcript& transcript = session->transcript_;
        for (size_t i = 0; i < tokens.size(); ++i) {
            const size_t index = transcript.tokens.size() + i;
            const bool last = i + 1 == tokens.size();
            const bool visited = visitor != nullptr && index >= visitor->first;
            batch_.add(tokens[i], transcript.position(index), session->sequence_, last || visited);
        }
    }
    if (batch_.size() > options_.batch) {
        fail(ErrorCode::invalid_argument, "{} tokens in one step, but a step takes at most {}", batch_.size(),
             options_.batch);
    }
    context_->decode(batch_);
    size_t row = 0;
    for (const auto& [session, tokens] : feeds) {
        Transcript& transcript = session->transcript_;
        for (size_t i = 0; visitor != nullptr && i < tokens.size(); ++i) {
            if (transcript.tokens.size() + i >= visitor->first) {
                visitor->visit(transcript.tokens.size() + i, context_->logits(row + i));
            }
        }
        row += tokens.size();
        const auto logits = context_->logits(row - 1);
        session->logits_.assign(logits.begin(), logits.end());
        transcript.tokens.insert(transcript.tokens.end(), tokens.begin(), tokens.end());
    }
    for (const auto& [session, tokens] : feeds) {
        const size_t length = session->transcript_.raw_length();
        if (length > 0 && strategy_->next_compaction(length - 1) == length) {
            compact(*session);
        }
    }
}

void SessionPool::compact(Session& session) {
    Workspace workspace{*context_,
                        static_cast<SequenceId>(options_.sessions),
                        pooler_.get(),
                        pooler_ ? &model_->token_rows() : nullptr,
                        slots_ ? std::span<const float>(slots_->vectors) : std::span<const float>(),
                        replacement_};
    Compaction done = strategy_->compact(session.transcript_, session.sequence_, workspace);
    if (!done.logits.empty()) {
        session.logits_ = done.logits;
    }
    if (session.on_compaction) {
        session.on_compaction(done);
    }
}

} // namespace spool
