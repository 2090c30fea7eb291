#include "train/language_model.h"

#include <cmath>
#include <span>

#include "core/error.h"
#include "core/random.h"
#include "train/checkpointed.h"

namespace spool::train {

namespace {

/// Reads tensors of one file by name, checking shapes (PyTorch's order).
class Loader {
  public:
    Loader(const GgufFile& file, at::Device device) : file_(file), device_(device) {}

    Tensor read(const std::string& name, const std::vector<int64_t>& shape) const {
        const GgufTensor* found = file_.find_tensor(name);
        if (found == nullptr) {
            fail(ErrorCode::bad_file, "{}: the tensor '{}' is missing", file_.path().string(), name);
        }
        if (std::vector<int64_t>(found->ne.rbegin(), found->ne.rend()) != shape) {
            fail(ErrorCode::bad_file,
                 "{}: the tensor '{}' is not of the shape that the file's sizes call for",
                 file_.path().string(), name);
        }
        std::vector<float> values = to_float(*found);
        return at::from_blob(values.data(), shape, at::kFloat).to(device_, at::kFloat, false, true);
    }

    Linear linear(const std::string& name, int64_t out, int64_t in) const {
        Linear layer;
        layer.weight = read(name + ".weight", {out, in});
        if (file_.find_tensor(name + ".bias") != nullptr) {
            layer.bias = read(name + ".bias", {out});
        }
        return layer;
    }

  private:
    const GgufFile& file_;
    at::Device device_;
};

Tensor block_forward(const Block& block, const ModelShape& shape, const Tensor& x, const Tensor& cosine,
                     const Tensor& sine, const AttentionPlan& plan) {
    const RopePairs pairs = shape.architecture == "llama" ? RopePairs::neighbours : RopePairs::halves;
    const auto heads = [&](const Tensor& t) { return t.unflatten(-1, {-1, shape.head_dim}); };

    const Tensor h = rms_norm(x, block.attn_norm, shape.norm_eps);
    const Tensor q = rotate(heads(linear(h, block.attn_q)), cosine, sine, pairs);
    const Tensor k = rotate(heads(linear(h, block.attn_k)), cosine, sine, pairs);
    const Tensor v = heads(linear(h, block.attn_v));
    const Tensor y = x + linear(attend(q, k, v, plan).flatten(-2), block.attn_output);

    const Tensor g = rms_norm(y, block.ffn_norm, shape.norm_eps);
    return y + linear(swiglu(linear(g, block.ffn_gate), linear(g, block.ffn_up)), block.ffn_down);
}

} // namespace

std::vector<std::pair<std::string, Linear*>> LanguageModel::matrices(size_t layer) {
    Block& b = blocks[layer];
    return {{"attn_q", &b.attn_q},           {"attn_k", &b.attn_k},     {"attn_v", &b.attn_v},
            {"attn_output", &b.attn_output}, {"ffn_gate", &b.ffn_gate}, {"ffn_up", &b.ffn_up},
            {"ffn_down", &b.ffn_down}};
}

Tensor LanguageModel::embed(const Tensor& ids) const { return at::embedding(token_embd, ids); }

Tensor LanguageModel::through_blocks(const Tensor& x, const Tensor& positions, const AttentionPlan& plan,
                                     size_t count) const {
    const Tensor angles = at::outer(positions.to(at::kDouble), rope_frequencies);
    const Tensor cosine = angles.cos().to(x.dtype()).unsqueeze(1); // [S, 1, d/2]
    const Tensor sine = angles.sin().to(x.dtype()).unsqueeze(1);
    Tensor hidden = x;
    for (const Block& block : std::span(blocks).first(count)) {
        const auto run = [&block, this, cosine, sine, plan](const Tensor& input) {
            return block_forward(block, shape, input, cosine, sine, plan);
        };
        hidden = checkpoint_blocks ? checkpointed(run, hidden) : run(hidden);
    }
    return hidden;
}

Tensor LanguageModel::forward(const Tensor& x, const Tensor& positions, const AttentionPlan& plan) const {
    return rms_norm(through_blocks(x, positions, plan, blocks.size()), output_norm, shape.norm_eps);
}

LanguageModel load_language_model(const GgufFile& file, at::Device device) {
    LanguageModel model;
    model.shape = read_model_shape(file);
    const ModelShape& s = model.shape;
    const Loader loader(file, device);
    const int64_t kv = s.kv_heads * s.head_dim;

    model.token_embd = loader.read("token_embd.weight", {s.vocab, s.width});
    model.output = s.tied ? model.token_embd : loader.read("output.weight", {s.vocab, s.width});
    model.output_norm = loader.read("output_norm.weight", {s.width});
    model.rope_frequencies = at::tensor(at::ArrayRef<double>(rope_frequencies(file, s))).to(device);
    for (int64_t n = 0; n < s.layers; ++n) {
        const std::string prefix = "blk." + std::to_string(n) + ".";
        Block block;
        block.attn_norm = loader.read(prefix + "attn_norm.weight", {s.width});
        block.ffn_norm = loader.read(prefix + "ffn_norm.weight", {s.width});
        block.attn_q = loader.linear(prefix + "attn_q", s.heads * s.head_dim, s.width);
        block.attn_k = loader.linear(prefix + "attn_k", kv, s.width);
        block.attn_v = loader.linear(prefix + "attn_v", kv, s.width);
        block.attn_output = loader.linear(prefix + "attn_output", s.width, s.heads * s.head_dim);
        block.ffn_gate = loader.linear(prefix + "ffn_gate", s.ffn, s.width);
        block.ffn_up = loader.linear(prefix + "ffn_up", s.ffn, s.width);
        block.ffn_down = loader.linear(prefix + "ffn_down", s.width, s.ffn);
        model.blocks.push_back(std::move(block));
    }
    return model;
}

void add_adapters(LanguageModel& model, int64_t rank, double alpha, uint64_t seed) {
    Random random(seed);
    const auto options = model.token_embd.options();
    for (size_t layer = 0; layer < model.blocks.size(); ++layer) {
        for (auto& [name, matrix] : model.matrices(layer)) {
            const double bound = 1.0 / std::sqrt(static_cast<double>(matrix->in_features()));
            Tensor a = at::empty({rank, matrix->in_features()}, at::kFloat);
            for (float& value : std::span(a.mutable_data_ptr<float>(), static_cast<size_t>(a.numel()))) {
                value = static_cast<float>((2 * random.uniform() - 1) * bound);
            }
            matrix->adapter =
                LowRank{.a = a.to(options).requires_grad_(),
                        .b = at::zeros({matrix->out_features(), rank}, options).requires_grad_(),
                        .scale = alpha / static_cast<double>(rank)};
        }
    }
}

AdaptersAside::AdaptersAside(LanguageModel& model) : model_(model) {
    for (size_t layer = 0; layer < model_.blocks.size(); ++layer) {
        for (auto& [name, matrix] : model_.matrices(layer)) {
            kept_.push_back(std::exchange(matrix->adapter, std::nullopt));
        }
    }
}

AdaptersAside::~AdaptersAside() {
    auto kept = kept_.begin();
    for (size_t layer = 0; layer < model_.blocks.size(); ++layer) {
        for (auto& [name, matrix] : model_.matrices(layer)) {
            matrix->adapter = std::move(*kept++);
        }
    }
}

std::vector<std::pair<std::string, Tensor>> adapter_parameters(LanguageModel& model) {
    std::vector<std::pair<std::string, Tensor>> parameters;
    for (size_t layer = 0; layer < model.blocks.size(); ++layer) {
        for (auto& [name, matrix] : model.matrices(layer)) {
            if (matrix->adapter) {
                const std::string full = "blk." + std::to_string(layer) + "." + name + ".weight";
                parameters.emplace_back(full + ".lora_a", matrix->adapter->a);
                parameters.emplace_back(full + ".lora_b", matrix->adapter->b);
            }
        }
    }
    return parameters;
}

std::vector<std::pair<std::string, Tensor>> model_parameters(LanguageModel& model, bool with_embedding) {
    std::vector<std::pair<std::string, Tensor>> parameters;
    if (with_embedding) {
        parameters.emplace_back("token_embd.weight", model.token_embd);
        if (!model.shape.tied) {
            parameters.emplace_back("output.weight", model.output);
        }
    }
    parameters.emplace_back("output_norm.weight", model.output_norm);
    for (size_t layer = 0; layer < model.blocks.size(); ++layer) {
        const std::string prefix = "blk." + std::to_string(layer) + ".";
        parameters.emplace_back(prefix + "attn_norm.weight", model.blocks[layer].attn_norm);
        parameters.emplace_back(prefix + "ffn_norm.weight", model.blocks[layer].ffn_norm);
        for (auto& [name, matrix] : model.matrices(layer)) {
            parameters.emplace_back(prefix + name + ".weight", matrix->weight);
            if (matrix->bias.defined()) {
                parameters.emplace_back(prefix + name + ".bias", matrix->bias);
            }
        }
    }
    return parameters;
}

void multiply_in_bf16(LanguageModel& model, bool blocks_frozen, bool head_frozen) {
    for (size_t layer = 0; layer < model.blocks.size(); ++layer) {
        for (auto& [name, matrix] : model.matrices(layer)) {
            matrix->products = at::kBFloat16;
            if (blocks_frozen && matrix->weight.defined()) {
                matrix->weight = matrix->weight.to(at::kBFloat16);
            }
        }
    }
    if (head_frozen) {
        model.output_bf16 = model.output.to(at::kBFloat16);
    }
}

void pack_matrices(LanguageModel& model, bool nested_scales) {
    for (size_t layer = 0; layer < model.blocks.size(); ++layer) {
        for (auto& [name, matrix] : model.matrices(layer)) {
            matrix->packed = pack_nf4(matrix->weight, 64, nested_scales);
            matrix->weight = Tensor();
        }
    }
}

} // namespace spool::train
