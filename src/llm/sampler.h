// Choosing the next token from logits: libllama's samplers in llama.cpp's usual order, with llama.cpp's names
// and defaults, over any span of logits (not only the last decode's).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "llm/tokenizer.h"

struct llama_sampler;

namespace spool {

/// When a grammar begins to bind.
struct GrammarStart {
    bool lazy = false;                 ///< only behind a trigger; before it anything goes
    std::vector<std::string> patterns; ///< regular expressions that trigger it
    std::vector<Token> tokens;         ///< tokens that trigger it
    std::string prefill;               ///< text of the grammar that the prompt ends in already
};

struct SamplerOptions {
    float temperature = 0.8F; ///< <= 0: greedy
    int32_t top_k = 40;       ///< <= 0: off
    float top_p = 0.95F;      ///< 1: off
    float min_p = 0.05F;      ///< 0: off
    int32_t penalty_last_n = 64;
    float repeat_penalty = 1.0F; ///< 1: off
    float frequency_penalty = 0.0F;
    float presence_penalty = 0.0F;
    float dry_multiplier = 0.0F; ///< 0: off
    float dry_base = 1.75F;
    int32_t dry_allowed_length = 2;
    int32_t dry_penalty_last_n = 64;
    std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
    std::string grammar; ///< GBNF with a root rule; empty: none
    GrammarStart grammar_start;
    uint32_t seed = 0;
    bool ignore_end = false; ///< end-of-generation tokens are never chosen
};

/// Chooses tokens; the generation loop asks for nothing more of a sampler.
class Chooser {
  public:
    virtual ~Chooser() = default;
    /// Chooses the next token from logits [n_vocab], and takes it into the history.
    virtual Token sample(std::span<const float> logits) = 0;
    /// Forgets all history for `history`, which ends at `position`; choices from there on follow from it and
    /// the seed.
    virtual void restart(std::span<const Token> history, uint64_t position) = 0;
};

class Sampler final : public Chooser {
  public:
    /// Throws Error{invalid_argument} for values out of range and for a grammar that does not parse.
    Sampler(const Tokenizer& tokenizer, SamplerOptions options);
    ~Sampler() override;
    Sampler(Sampler&&) noexcept;
    Sampler& operator=(Sampler&&) noexcept;

    /// Chooses a token and accepts it into the history of penalties, DRY and grammar.
    Token sample(std::span<const float> logits) override;
    /// Takes a token that was not sampled (the prompt) into the history of penalties and DRY.
    void accept(Token token);
    /// Forgets all history, feeds `history` (its end matters) to penalties and DRY, begins the grammar anew,
    /// and restarts the random numbers from the seed and `position`: a run that saved at this position and
    /// one that restores there continue alike.
    void restart(std::span<const Token> history, uint64_t position) override;

    const SamplerOptions& options() const { return options_; }

  private:
    struct Deleter {
        void operator()(llama_sampler* sampler) const;
    };
    using Handle = std::unique_ptr<llama_sampler, Deleter>;

    struct Candidates;

    Handle make_chain(uint32_t seed) const;
    Handle make_grammar() const;
    Token choose(std::span<const float> logits, bool grammar_first);

    const Tokenizer* tokenizer_;
    SamplerOptions options_;
    Handle chain_;
    Handle grammar_;
    std::unique_ptr<Candidates> candidates_;
};

} // namespace spool
