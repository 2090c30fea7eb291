#include "train/reader.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "core/error.h"
#include "core/random.h"
#include "train/checkpoint.h"
#include "train/export.h"

namespace spool::train {

namespace {

Tensor index_tensor(const std::vector<int64_t>& values, at::Device device) {
    return at::tensor(at::ArrayRef<int64_t>(values), at::kLong).to(device);
}

Tensor prediction_field(const ForwardPass& pass, int64_t Prediction::* field, at::Device device) {
    std::vector<int64_t> values;
    values.reserve(pass.predictions().size());
    for (const Prediction& prediction : pass.predictions()) {
        values.push_back(prediction.*field);
    }
    return index_tensor(values, device);
}

/// kept = 0, 1, 2, ...: nothing was evicted.
bool is_prefix(const std::vector<uint32_t>& kept) { return kept.empty() || kept.back() + 1 == kept.size(); }

} // namespace

void Reader::pool_hidden_states(size_t blocks, const MemorySettings& window) {
    if (blocks < 1 || blocks > model_.blocks.size()) {
        fail(ErrorCode::invalid_argument, "--hidden-blocks {}: the model has {} blocks", blocks,
             model_.blocks.size());
    }
    hidden_blocks_ = blocks;
    hidden_window_ = window;
    hidden_window_.refresh = Layout::carry;
    hidden_window_.max_distant = std::numeric_limits<uint32_t>::max();
}

std::vector<Tensor> Reader::hidden_states(std::span<const TraceText> traces) const {
    ForwardPass pass(vectors());
    for (const TraceText& text : traces) {
        pass.add_carry(text, hidden_window_, plan_compactions(text.raw().size(), hidden_window_, 0, {}),
                       false);
    }
    pass.finish();
    // A raw token's row is the one that predicts the next; the last token is never distant.
    std::vector<std::vector<int64_t>> rows(traces.size());
    for (size_t i = 0; i < traces.size(); ++i) {
        rows[i].resize(traces[i].raw().size());
    }
    for (const Prediction& prediction : pass.predictions()) {
        if (prediction.token > 0) {
            rows[prediction.trace][prediction.token - 1] = prediction.row;
        }
    }
    const Tensor states = model_.through_blocks(model_.embed(index_tensor(pass.ids(), device())),
                                                index_tensor(pass.positions(), device()),
                                                to_device(pass.plan(), device()), hidden_blocks_);
    const Tensor scaled =
        rms_norm(states, at::ones({states.size(1)}, states.options()), model_.shape.norm_eps);
    std::vector<Tensor> result;
    result.reserve(traces.size());
    for (const auto& of_trace : rows) {
        result.push_back(scaled.index_select(0, index_tensor(of_trace, device())));
    }
    return result;
}

std::vector<Tensor> Reader::pasts_of(std::span<const TraceText> traces) const {
    if (hidden_blocks_ > 0) {
        return hidden_states(traces);
    }
    std::vector<Tensor> pasts;
    pasts.reserve(traces.size());
    for (const TraceText& text : traces) {
        const std::vector<int64_t> ids(text.raw().begin(), text.raw().end());
        // The pooler reads embeddings as constants, in full training too.
        pasts.push_back(model_.embed(index_tensor(ids, device())).detach());
    }
    return pasts;
}

uint32_t Reader::vectors() const {
    return has_slots() ? static_cast<uint32_t>(slots_.size(0)) : pooler_->shape().n_sp;
}

std::vector<std::pair<std::string, Tensor>> Reader::memory_parameters() const {
    if (has_slots()) {
        return {{"slots/vectors", slots_}};
    }
    std::vector<std::pair<std::string, Tensor>> parameters;
    for (const auto& [name, tensor] : pooler_->parameters()) {
        parameters.emplace_back("pooler/" + name, tensor);
    }
    return parameters;
}

Tensor Reader::memory_vectors(const ForwardPass& pass, std::span<const TraceText> traces) const {
    const auto& tasks = pass.pools();
    if (has_slots()) {
        return slots_.repeat({std::ssize(tasks), 1});
    }
    std::vector<int64_t> lengths;
    lengths.reserve(tasks.size());
    for (const PoolTask& task : tasks) {
        lengths.push_back(static_cast<int64_t>(task.kept.size()));
    }
    const bool one_trace = std::ranges::all_of(tasks, [&](const PoolTask& task) {
        return task.trace == tasks.front().trace && is_prefix(task.kept);
    });
    const std::vector<Tensor> pasts = pasts_of(traces);
    Tensor past;
    if (one_trace) {
        // Every pool reads a prefix of the longest: the past is normalised once.
        past = pasts[tasks.front().trace].slice(0, 0, lengths.back()).unsqueeze(0);
    } else {
        const int64_t longest = *std::ranges::max_element(lengths);
        std::vector<Tensor> rows;
        rows.reserve(tasks.size());
        for (const PoolTask& task : tasks) {
            const Tensor row = pasts[task.trace].index_select(
                0, index_tensor({task.kept.begin(), task.kept.end()}, device()));
            rows.push_back(at::constant_pad_nd(row, {0, 0, 0, longest - row.size(0)}));
        }
        past = at::stack(rows);
    }
    return pooler_->forward(past, index_tensor(lengths, device())).soft_prompt.flatten(0, 1);
}

Tensor Reader::hidden(const ForwardPass& pass, std::span<const TraceText> traces,
                      const Tensor& vectors) const {
    Tensor x = model_.embed(index_tensor(pass.ids(), device()));
    if (!pass.pools().empty()) {
        const Tensor rows = index_tensor(pass.vector_rows(), device());
        x = x.index_copy(0, rows, vectors.defined() ? vectors : memory_vectors(pass, traces));
    }
    return model_.forward(x, index_tensor(pass.positions(), device()), to_device(pass.plan(), device()));
}

TokenLosses Reader::losses(const ForwardPass& pass, const Tensor& hidden, const Tensor& weights,
                           const Tensor& teacher, double kl) const {
    const Tensor rows = prediction_field(pass, &Prediction::row, device());
    const Tensor targets = prediction_field(pass, &Prediction::target, device());
    return cross_entropy(hidden.index_select(0, rows), model_.head(), targets, weights.to(device()), teacher,
                         kl);
}

std::vector<bool> Reader::correct(const ForwardPass& pass, const Tensor& hidden,
                                  std::span<const size_t> which) const {
    std::vector<int64_t> rows;
    rows.reserve(which.size());
    for (const size_t i : which) {
        rows.push_back(pass.predictions()[i].row);
    }
    std::vector<bool> result;
    if (rows.empty()) {
        return result;
    }
    const Tensor best = at::mm(hidden.index_select(0, index_tensor(rows, device())), model_.output.t())
                            .argmax(-1)
                            .to(at::kCPU);
    for (size_t i = 0; i < which.size(); ++i) {
        result.push_back(best[static_cast<int64_t>(i)].item<int64_t>() ==
                         pass.predictions()[which[i]].target);
    }
    return result;
}

MassFunction Reader::mass_of(const TraceText& trace) const {
    return [this, trace](std::span<const uint32_t> kept) {
        const at::NoGradGuard no_grad;
        const Tensor past = pasts_of(std::span(&trace, 1))
                                .front()
                                .index_select(0, index_tensor({kept.begin(), kept.end()}, device()))
                                .unsqueeze(0);
        const Tensor mass =
            pooler_->forward(past, index_tensor({past.size(1)}, device())).mass[0].to(at::kCPU).contiguous();
        const auto* values = mass.const_data_ptr<float>();
        return std::vector<float>(values, values + mass.numel());
    };
}

namespace {

/// Random directions, as long as an embedding is on average.
Tensor fresh_slots(const Settings& settings, const Tensor& token_embd, double norm) {
    Random random(settings.seed + 2);
    Tensor vectors = at::empty({settings.slots, token_embd.size(1)}, at::kFloat);
    for (float& value : std::span(vectors.mutable_data_ptr<float>(), static_cast<size_t>(vectors.numel()))) {
        value = static_cast<float>(random.normal());
    }
    return (vectors * (norm / vectors.norm(2, -1, true))).to(token_embd.device()).requires_grad_();
}

} // namespace

at::Device device_of(const Settings& settings) {
    const int count =
        at::hasCUDA()
            ? static_cast<int>(at::globalContext().getAcceleratorHooksInterface(at::kCUDA).deviceCount())
            : 0;
    if (settings.device == "cpu" || (settings.device == "auto" && count == 0)) {
        return at::kCPU;
    }
    std::string_view number = "0";
    if (settings.device == "auto" || settings.device == "cuda") {
        const char* local = std::getenv("LOCAL_RANK");
        number = local == nullptr ? number : local;
    } else {
        number = settings.device;
        number = number.starts_with("cuda:") ? number.substr(5) : "";
    }
    int index = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error != std::errc() || end != number.data() + number.size()) {
        fail(ErrorCode::invalid_argument, "--device '{}': expected cpu, cuda, cuda:N or auto",
             settings.device);
    }
    if (index < 0 || index >= count) {
        fail(ErrorCode::invalid_argument, "--device {}: LibTorch sees {} CUDA devices here", settings.device,
             count);
    }
    return {at::kCUDA, static_cast<at::DeviceIndex>(index)};
}

Reader make_reader(const Settings& settings, const GgufFile& file) {
    const at::Device device = device_of(settings);
    LanguageModel model = load_language_model(file, device);
    model.checkpoint_blocks = settings.recompute;
    const bool adapts = settings.stage == Stage::lora || settings.stage == Stage::qlora;
    // Memory's vectors begin as long as the rows they stand beside.
    const auto norm = model.token_embd.norm(2, -1).mean().item<double>();
    const PoolerShape shape{.hidden = static_cast<uint32_t>(model.shape.width),
                            .n_sp = settings.n_sp,
                            .heads = settings.pooler_heads,
                            .layers = settings.pooler_layers,
                            .ffn = settings.pooler_ffn};
    const bool slots = settings.memory == MemoryKind::slots;
    Tensor vectors = slots ? fresh_slots(settings, model.token_embd, norm) : Tensor();
    Reader reader = slots ? Reader(std::move(model), std::move(vectors))
                          : Reader(std::move(model), PoolerNet(shape, norm, settings.seed, device));
    if (settings.memory == MemoryKind::hidden) {
        reader.pool_hidden_states(settings.hidden_blocks, memory_settings(settings));
    }
    if (adapts) {
        add_adapters(reader.model(), settings.rank, settings.alpha, settings.seed + 1);
    }
    if (!settings.from.empty()) {
        if (std::filesystem::is_directory(settings.from)) {
            load_bundle(reader, settings.from);
        } else {
            load_weights(reader, settings.from);
        }
    }
    if (settings.stage == Stage::qlora) {
        pack_matrices(reader.model(), settings.nested_nf4);
    }
    if (settings.bf16) {
        const bool trains_model = settings.stage == Stage::full || settings.stage == Stage::scratch;
        multiply_in_bf16(reader.model(), !trains_model, settings.stage != Stage::scratch);
    }
    return reader;
}

std::vector<ParameterGroup> trained_parameters(Reader& reader, const Settings& settings) {
    const ParameterGroup memory{.parameters = reader.memory_parameters(), .lr = settings.pooler_lr};
    ParameterGroup rest{.parameters = {}, .lr = settings.lr};
    LanguageModel& model = reader.model();
    if (settings.stage == Stage::lora || settings.stage == Stage::qlora) {
        for (auto& [name, tensor] : adapter_parameters(model)) {
            rest.parameters.emplace_back("lora/" + name, tensor);
        }
    } else if (settings.stage == Stage::full || settings.stage == Stage::scratch) {
        for (auto& [name, tensor] : model_parameters(model, settings.stage == Stage::scratch)) {
            rest.parameters.emplace_back("model/" + name, tensor.requires_grad_());
        }
    }
    return {memory, rest};
}

} // namespace spool::train
