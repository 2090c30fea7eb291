// The public API over the layers: nothing but translation.
#include <optional>
#include <utility>

#include <spool/spool.h>

#include "context/memory_request.h"
#include "context/session.h"
#include "generation/generate.h"
#include "generation/session_file.h"
#include "llm/sampler.h"
#include "llm/tokenizer.h"

namespace spool {

struct Engine::Implementation {
    std::optional<Bundle> bundle;
    std::unique_ptr<Model> model;
    std::unique_ptr<Tokenizer> tokenizer;
    std::unique_ptr<SessionPool> pool;

    const Bundle* bundle_or_null() const { return bundle ? &*bundle : nullptr; }
};

struct EngineSession::Implementation {
    Engine::Implementation* engine = nullptr;
    std::unique_ptr<Session> session;
};

namespace {

MemoryRequest memory_request(const EngineOptions& options) {
    const auto set = [](auto value) { return value == 0 ? std::nullopt : std::optional(value); };
    MemoryRequest request;
    if (!options.strategy.empty()) {
        request.strategy = strategy_from_string(options.strategy);
    }
    if (!options.refresh.empty()) {
        request.refresh = layout_from_string(options.refresh);
    }
    request.window = set(options.window);
    request.chunk = set(options.chunk);
    request.max_distant = set(options.max_distant);
    request.pin = options.pin;
    return request;
}

SamplerOptions sampler_options(const GenerateOptions& options) {
    SamplerOptions sampler;
    sampler.temperature = options.temperature;
    sampler.top_k = options.top_k;
    sampler.top_p = options.top_p;
    sampler.min_p = options.min_p;
    sampler.seed = options.seed;
    sampler.ignore_end = options.ignore_eos;
    sampler.grammar = options.grammar;
    return sampler;
}

} // namespace

Engine::Engine(const EngineOptions& options) : implementation_(std::make_unique<Implementation>()) {
    auto& self = *implementation_;
    if (!options.bundle.empty()) {
        self.bundle = read_bundle(options.bundle);
    }
    ModelOptions model;
    model.path = options.model;
    model.gpu_layers = options.gpu_layers;
    self.model = std::make_unique<Model>(model);
    if (self.bundle) {
        check_fits(*self.bundle, self.model->identity());
    }
    self.tokenizer = std::make_unique<Tokenizer>(*self.model);
    PoolOptions pool;
    pool.memory = resolve(memory_request(options), self.bundle_or_null(), *self.model);
    pool.sessions = options.sessions;
    pool.threads = options.threads;
    self.pool = std::make_unique<SessionPool>(*self.model, self.bundle_or_null(), pool);
}

Engine::~Engine() = default;

EngineSession Engine::new_session() {
    auto session = std::make_unique<EngineSession::Implementation>();
    session->engine = implementation_.get();
    session->session = implementation_->pool->open();
    return EngineSession(std::move(session));
}

EngineMemory Engine::memory() const {
    const PoolMemory& m = implementation_->pool->memory();
    return {m.model, m.kv, m.compute, m.pooler_weights + m.pooler_scratch};
}

EngineSession::EngineSession(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
EngineSession::EngineSession(EngineSession&&) noexcept = default;
EngineSession& EngineSession::operator=(EngineSession&&) noexcept = default;
EngineSession::~EngineSession() = default;

void EngineSession::read(std::string_view text) {
    const bool first = length() == 0;
    implementation_->session->read(implementation_->engine->tokenizer->encode(text, first, false));
}

GenerateResult EngineSession::generate(const GenerateOptions& options,
                                       const std::function<bool(std::string_view)>& on_text) {
    Sampler sampler(*implementation_->engine->tokenizer, sampler_options(options));
    sampler.restart(implementation_->session->transcript().tokens, length());
    GenerationOptions generation;
    generation.max_tokens = options.max_tokens;
    generation.max_seconds = options.max_seconds;
    generation.stop = options.stop;
    generation.on_text = on_text;
    const Generation result = spool::generate(*implementation_->session, sampler,
                                              *implementation_->engine->tokenizer, generation, nullptr);
    return {result.text, result.tokens.size(), std::string(to_string(result.reason))};
}

size_t EngineSession::length() const { return implementation_->session->transcript().tokens.size(); }
size_t EngineSession::cells_used() const { return implementation_->session->cells_used(); }

void EngineSession::save(const std::string& path) {
    auto& engine = *implementation_->engine;
    save_session(*implementation_->session, *engine.pool, engine.bundle_or_null(), path);
}

void EngineSession::restore(const std::string& path) {
    auto& engine = *implementation_->engine;
    restore_session(*implementation_->session, *engine.pool, engine.bundle_or_null(), path);
}

} // namespace spool
