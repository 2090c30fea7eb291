// What is trained, and how it reads a forward pass.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "train/forward_pass.h"
#include "train/language_model.h"
#include "train/loss.h"
#include "train/optimizer.h"
#include "train/pooler_net.h"
#include "train/settings.h"

namespace spool::train {

class Reader {
  public:
    Reader(LanguageModel model, PoolerNet pooler) : model_(std::move(model)), pooler_(std::move(pooler)) {}

    LanguageModel& model() { return model_; }
    const PoolerNet& pooler() const { return pooler_; }
    at::Device device() const { return model_.token_embd.device(); }

    /// The hidden states [S, H] of every row of a finished pass over `traces`. `vectors` [pools * n_sp, H]
    /// stand in for the pooler's, if defined.
    Tensor hidden(const ForwardPass& pass, std::span<const TraceText> traces,
                  const Tensor& vectors = {}) const;
    /// The vectors of all pools of a pass, [pools * n_sp, H].
    Tensor soft_prompts(const ForwardPass& pass, std::span<const TraceText> traces) const;
    /// The loss and each prediction's cross-entropy, in the pass's order. `weights`: one per prediction.
    TokenLosses losses(const ForwardPass& pass, const Tensor& hidden, const Tensor& weights,
                       const Tensor& teacher = {}, double kl = 0) const;
    /// Is the most likely token the target? One value per prediction asked for (indices into predictions()).
    std::vector<bool> correct(const ForwardPass& pass, const Tensor& hidden,
                              std::span<const size_t> which) const;

    /// Masses of kept raw tokens of `trace`, as the engine's eviction asks for them.
    MassFunction mass_of(const TraceText& trace) const;

  private:
    Tensor past_of(const PoolTask& task, std::span<const TraceText> traces) const;

    LanguageModel model_;
    PoolerNet pooler_;
};

/// Fresh weights, or those of settings.from (a bundle's folder or a checkpoint), ready for settings.stage.
Reader make_reader(const Settings& settings, const GgufFile& file, at::Device device);

/// What settings.stage trains, by name: "pooler/...", "lora/...", "model/...".
std::vector<ParameterGroup> trained_parameters(Reader& reader, const Settings& settings);

} // namespace spool::train
