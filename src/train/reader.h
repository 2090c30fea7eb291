// What is trained, and how it reads a forward pass.
#pragma once

#include <map>
#include <memory>
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
    Reader(LanguageModel model, PoolerNet pooler)
        : model_(std::move(model)), pooler_(std::make_unique<PoolerNet>(std::move(pooler))) {}
    /// `slots` [m, H]: the vectors that are fed after each chunk, a leaf.
    Reader(LanguageModel model, Tensor slots) : model_(std::move(model)), slots_(std::move(slots)) {}

    /// From now on the pooler reads hidden states instead of embeddings: the text streamed in a window
    /// without memory, behind the first `blocks` blocks, each state scaled to a root mean square of 1.
    void pool_hidden_states(size_t blocks, const MemorySettings& window);

    LanguageModel& model() { return model_; }
    /// Memory is written by the model itself, from slots(), else by pooler().
    bool has_slots() const { return slots_.defined(); }
    const PoolerNet& pooler() const { return *pooler_; }
    const Tensor& slots() const { return slots_; }
    /// Vectors that one compaction writes: n_sp or m.
    uint32_t vectors() const;
    /// What writes memory, as trained: "pooler/..." or "slots/vectors".
    std::vector<std::pair<std::string, Tensor>> memory_parameters() const;
    at::Device device() const { return model_.token_embd.device(); }

    /// The hidden states [S, H] of every row of a finished pass over `traces`. `vectors` [pools * vectors(),
    /// H] stand in for memory_vectors(), if defined.
    Tensor hidden(const ForwardPass& pass, std::span<const TraceText> traces,
                  const Tensor& vectors = {}) const;
    /// The vectors that enter at all compactions of a pass, [pools * vectors(), H].
    Tensor memory_vectors(const ForwardPass& pass, std::span<const TraceText> traces) const;
    /// The loss and each prediction's cross-entropy, in the pass's order. `weights`: one per prediction.
    TokenLosses losses(const ForwardPass& pass, const Tensor& hidden, const Tensor& weights,
                       const Tensor& teacher = {}, double kl = 0) const;
    /// Is the most likely token the target? One value per prediction asked for (indices into predictions()).
    std::vector<bool> correct(const ForwardPass& pass, const Tensor& hidden,
                              std::span<const size_t> which) const;

    /// Masses of kept raw tokens of `trace`, as the engine's eviction asks for them.
    MassFunction mass_of(const TraceText& trace) const;

  private:
    /// What the pooler reads of each trace's raw tokens, [raw tokens, H].
    std::vector<Tensor> pasts_of(std::span<const TraceText> traces) const;
    std::vector<Tensor> hidden_states(std::span<const TraceText> traces) const;

    LanguageModel model_;
    std::unique_ptr<PoolerNet> pooler_; ///< nullptr where there are slots
    Tensor slots_;
    size_t hidden_blocks_ = 0;     ///< 0: the pooler reads embeddings
    MemorySettings hidden_window_; ///< how the text is streamed for hidden states
};

/// Fresh weights, or those of settings.from (a bundle's folder or a checkpoint), ready for settings.stage.
Reader make_reader(const Settings& settings, const GgufFile& file);

/// settings.device; of several CUDA devices "auto" and "cuda" mean the one that torchrun's LOCAL_RANK names.
/// Throws Error{invalid_argument} for a device that is not there.
at::Device device_of(const Settings& settings);

/// What settings.stage trains, by name: memory_parameters(), "lora/...", "model/...".
std::vector<ParameterGroup> trained_parameters(Reader& reader, const Settings& settings);

} // namespace spool::train
