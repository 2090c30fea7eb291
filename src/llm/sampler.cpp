#include "llm/sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <llama.h>

#include "core/error.h"

namespace spool {

namespace {

void check_range(bool valid, const char* name, float value, const char* expected) {
    if (!valid) {
        fail(ErrorCode::invalid_argument, "{} is {}, expected {}", name, value, expected);
    }
}

void check(const SamplerOptions& o) {
    check_range(!std::isnan(o.temperature), "temperature", o.temperature, "a number");
    check_range(o.top_p > 0 && o.top_p <= 1, "top-p", o.top_p, "0 < p <= 1");
    check_range(o.min_p >= 0 && o.min_p <= 1, "min-p", o.min_p, "0 <= p <= 1");
    check_range(o.repeat_penalty > 0, "repeat-penalty", o.repeat_penalty, "more than 0 (1 is off)");
    check_range(o.dry_multiplier >= 0, "dry-multiplier", o.dry_multiplier, "0 (off) or more");
    check_range(o.dry_base >= 1, "dry-base", o.dry_base, "1 or more");
}

/// splitmix64's finaliser, so that neighbouring positions give unrelated seeds.
uint32_t mix(uint32_t seed, uint64_t position) {
    uint64_t z = (static_cast<uint64_t>(seed) << 32U) + position * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return static_cast<uint32_t>((z ^ (z >> 31U)) >> 32U);
}

} // namespace

void Sampler::Deleter::operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }

/// Kept between calls: a vocabulary's worth of candidates is too much to allocate for every token.
struct Sampler::Candidates {
    std::vector<llama_token_data> data;
};

Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

Sampler::Sampler(const Tokenizer& tokenizer, SamplerOptions options)
    : tokenizer_(&tokenizer), options_(std::move(options)), candidates_(std::make_unique<Candidates>()) {
    check(options_);
    chain_ = make_chain(options_.seed);
    grammar_ = make_grammar();
}

Sampler::Handle Sampler::make_chain(uint32_t seed) const {
    const llama_vocab* vocab = tokenizer_->handle();
    const auto& o = options_;
    Handle chain(llama_sampler_chain_init(llama_sampler_chain_default_params()));
    const auto add = [&](llama_sampler* sampler) { llama_sampler_chain_add(chain.get(), sampler); };

    if (o.ignore_end) {
        std::vector<llama_logit_bias> never;
        for (Token token = 0; token < tokenizer_->size(); ++token) {
            if (tokenizer_->is_end(token)) {
                never.push_back({token, -INFINITY});
            }
        }
        add(llama_sampler_init_logit_bias(tokenizer_->size(), static_cast<int32_t>(never.size()),
                                          never.data()));
    }
    const bool penalties =
        o.repeat_penalty != 1.0F || o.frequency_penalty != 0.0F || o.presence_penalty != 0.0F;
    if (penalties && o.penalty_last_n != 0) {
        add(llama_sampler_init_penalties(tokenizer_->size(), o.penalty_last_n, o.repeat_penalty,
                                         o.frequency_penalty, o.presence_penalty));
    }
    if (o.dry_multiplier > 0.0F && o.dry_penalty_last_n != 0) {
        std::vector<const char*> breakers;
        breakers.reserve(o.dry_sequence_breakers.size());
        for (const auto& breaker : o.dry_sequence_breakers) {
            breakers.push_back(breaker.c_str());
        }
        add(llama_sampler_init_dry(vocab, o.dry_multiplier, o.dry_base, o.dry_allowed_length,
                                   o.dry_penalty_last_n, breakers.data(), breakers.size()));
    }
    if (o.temperature <= 0.0F) {
        add(llama_sampler_init_greedy());
        return chain;
    }
    if (o.top_k > 0) {
        add(llama_sampler_init_top_k(o.top_k));
    }
    if (o.top_p < 1.0F) {
        add(llama_sampler_init_top_p(o.top_p, 1));
    }
    if (o.min_p > 0.0F) {
        add(llama_sampler_init_min_p(o.min_p, 1));
    }
    add(llama_sampler_init_temp(o.temperature));
    add(llama_sampler_init_dist(seed));
    return chain;
}

Sampler::Handle Sampler::make_grammar() const {
    if (options_.grammar.empty()) {
        return nullptr;
    }
    const GrammarStart& start = options_.grammar_start;
    std::vector<const char*> patterns;
    patterns.reserve(start.patterns.size());
    for (const auto& pattern : start.patterns) {
        patterns.push_back(pattern.c_str());
    }
    const char* text = options_.grammar.c_str();
    Handle grammar(start.lazy ? llama_sampler_init_grammar_lazy_patterns(
                                    tokenizer_->handle(), text, "root", patterns.data(), patterns.size(),
                                    start.tokens.data(), start.tokens.size())
                              : llama_sampler_init_grammar(tokenizer_->handle(), text, "root"));
    if (!grammar) {
        fail(ErrorCode::invalid_argument, "the grammar does not parse; it must be GBNF with a rule named "
                                          "root (llama.cpp's grammars/README.md)");
    }
    if (!start.lazy) {
        for (const Token token : tokenizer_->encode(start.prefill, false, true)) {
            llama_sampler_accept(grammar.get(), token);
        }
    }
    return grammar;
}

Token Sampler::choose(std::span<const float> logits, bool grammar_first) {
    auto& candidates = candidates_->data;
    candidates.resize(logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
        candidates[i] = {static_cast<Token>(i), logits[i], 0.0F};
    }
    llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
    if (grammar_first) {
        llama_sampler_apply(grammar_.get(), &array);
    }
    llama_sampler_apply(chain_.get(), &array);
    if (array.selected < 0 || static_cast<size_t>(array.selected) >= array.size) {
        fail(ErrorCode::internal, "the samplers chose no token");
    }
    return array.data[array.selected].id;
}

Token Sampler::sample(std::span<const float> logits) {
    Token token = choose(logits, false);
    if (grammar_) {
        // Constraining the whole vocabulary is slow: look first whether the free choice is allowed.
        llama_token_data one{token, 1.0F, 0.0F};
        llama_token_data_array array{&one, 1, -1, false};
        llama_sampler_apply(grammar_.get(), &array);
        if (one.logit == -INFINITY) {
            token = choose(logits, true);
        }
        llama_sampler_accept(grammar_.get(), token);
    }
    llama_sampler_accept(chain_.get(), token);
    return token;
}

void Sampler::accept(Token token) { llama_sampler_accept(chain_.get(), token); }

void Sampler::restart(std::span<const Token> history, uint64_t position) {
    chain_ = make_chain(mix(options_.seed, position));
    grammar_ = make_grammar();
    const auto depth =
        static_cast<size_t>(std::max({options_.penalty_last_n, options_.dry_penalty_last_n, 0}));
    for (const Token token : history.last(std::min(depth, history.size()))) {
        accept(token);
    }
}

} // namespace spool
