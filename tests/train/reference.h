// The tiny model of make_reference.py, loaded for the trainer's tests.
#pragma once

#include <string>

#include "formats/safetensors.h"
#include "support/data.h"
#include "train/reader.h"

namespace spool::test {

inline at::Tensor tensor_of(const TensorView& view) {
    const std::vector<float> values = to_float(view);
    return at::tensor(at::ArrayRef<float>(values)).view(view.shape);
}

/// Weights, tokens and results of the reference run.
class Reference {
  public:
    Reference() : file_(fixture("train/reference.safetensors")) {
        const auto ids = file_.at("tokens");
        const auto* first = reinterpret_cast<const Token*>(ids.data.data()); // NOLINT: int32 in the file
        tokens_.assign(first, first + ids.elements());
    }

    at::Tensor tensor(const std::string& name) const { return tensor_of(file_.at(name)); }
    train::TraceText trace() const { return {.tokens = tokens_, .pinned = 5}; }

    static MemorySettings memory(Layout layout) {
        MemorySettings memory;
        memory.strategy = StrategyKind::soft_prompt;
        memory.refresh = layout;
        memory.window = 12;
        memory.chunk = 8;
        return memory;
    }

    train::Reader reader() const {
        train::LanguageModel model;
        model.shape = {.architecture = "llama",
                       .layers = 2,
                       .width = 32,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 8,
                       .ffn = 64,
                       .vocab = 64,
                       .context = 512,
                       .rope_base = 10000,
                       .norm_eps = 1e-5,
                       .tied = true};
        model.token_embd = tensor("model/token_embd.weight");
        model.output = model.token_embd;
        model.output_norm = tensor("model/output_norm.weight");
        model.rope_frequencies = at::pow(10000.0, -at::arange(0, 8, 2, at::kDouble) / 8.0);
        for (int64_t n = 0; n < model.shape.layers; ++n) {
            const std::string prefix = "blk." + std::to_string(n) + ".";
            model.blocks.emplace_back();
            model.blocks.back().attn_norm = tensor("model/" + prefix + "attn_norm.weight");
            model.blocks.back().ffn_norm = tensor("model/" + prefix + "ffn_norm.weight");
            for (auto& [name, matrix] : model.matrices(static_cast<size_t>(n))) {
                const std::string full = prefix + name + ".weight";
                matrix->weight = tensor("model/" + full);
                matrix->adapter = train::LowRank{.a = tensor("lora/" + full + ".lora_a").requires_grad_(),
                                                 .b = tensor("lora/" + full + ".lora_b").requires_grad_(),
                                                 .scale = 2};
            }
        }
        PoolerWeights pooler{.shape = {.hidden = 32, .n_sp = 4, .heads = 4, .layers = 2, .ffn = 48},
                             .tensors = {}};
        pooler.out_scale = tensor("pooler/out_scale").item<float>();
        for (const auto& [name, shape] : pooler_tensors(pooler.shape)) {
            pooler.tensors[name] = to_float(file_.at("pooler/" + name));
        }
        return {std::move(model), train::PoolerNet(pooler)};
    }

    /// The whole trace in one pass of `layout`.
    train::ForwardPass pass(const train::Reader& reader, Layout layout) const {
        train::ForwardPass pass(reader.pooler().shape().n_sp);
        const auto compactions = plan_compactions(trace().raw().size(), memory(layout),
                                                  reader.pooler().shape().n_sp, reader.mass_of(trace()));
        if (layout == Layout::carry) {
            pass.add_carry(trace(), memory(layout), compactions);
        } else {
            pass.add_rebuild(trace(), compactions);
        }
        pass.finish();
        return pass;
    }

  private:
    SafetensorsFile file_;
    std::vector<Token> tokens_;
};

/// Each prediction's cross-entropy in the order of the tokens.
inline at::Tensor by_token(const train::ForwardPass& pass, const at::Tensor& nll) {
    at::Tensor ordered = at::empty_like(nll);
    const auto& predictions = pass.predictions();
    for (size_t i = 0; i < predictions.size(); ++i) {
        ordered[static_cast<int64_t>(predictions[i].token)] = nll[static_cast<int64_t>(i)];
    }
    return ordered;
}

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
    return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

} // namespace spool::test
