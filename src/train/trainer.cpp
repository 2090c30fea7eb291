#include "train/trainer.h"

#include <ATen/Parallel.h>
#include <cmath>
#include <numbers>
#include <numeric>
#include <unordered_map>

#include "core/error.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/random.h"
#include "train/checkpoint.h"
#include "train/curve.h"
#include "train/evaluate.h"
#include "train/reader.h"
#include "train/trace_stream.h"

namespace spool::train {

namespace {

enum class Reading { memory, full, window, recite };

/// One step's traces, and how each is read.
struct Batch {
    std::vector<TraceView> views;
    std::vector<TraceText> texts;
    std::vector<Reading> readings;
    std::vector<MemorySettings> memory;
    size_t raw_tokens = 0;
};

/// What one step came to.
struct StepResult {
    double loss = 0; ///< mean nats a token
    size_t tokens = 0;
    double norm = 0;
};

class Trainer {
  public:
    Trainer(const Settings& settings, const std::atomic<bool>& stop)
        : settings_(settings), stop_(stop), file_(settings.model),
          reader_(make_reader(settings, file_, at::kCPU)),
          adam_(trained_parameters(reader_, settings),
                {.weight_decay = settings.weight_decay, .eight_bit = settings.adam8}),
          stream_(settings.data, "train", vocab_sha256(file_), settings.seed),
          validation_(settings.data, "val", vocab_sha256(file_), settings.seed), curve_(settings.out) {
        if (const auto newest = latest_checkpoint(settings.out)) {
            resume(*newest);
        }
    }

    Json run() {
        Progress progress("training", settings_.steps);
        progress.update(step_);
        StepResult last;
        Json evaluation;
        while (step_ < settings_.steps && !stop_ && !out_of_time()) {
            const Stopwatch watch;
            last = train_step();
            seconds_ += watch.seconds();
            ++step_;
            curve_.add({{"step", step_},
                        {"loss", last.loss},
                        {"tokens", last.tokens},
                        {"norm", last.norm},
                        {"rate", rate()},
                        {"seconds", seconds_},
                        {"tokens_per_second", static_cast<double>(last.tokens) / watch.seconds()}});
            progress.update(step_);
            if (step_ % settings_.eval_every == 0 || step_ == settings_.steps) {
                evaluation = evaluate();
            }
            if (step_ % settings_.save_every == 0) {
                save();
            }
        }
        progress.finish();
        save();
        curve_.draw(to_json(settings_));
        return {{"steps", step_},           {"loss", last.loss},
                {"seconds", seconds_},      {"checkpoint", checkpoint_path(settings_.out, step_).string()},
                {"evaluation", evaluation}, {"interrupted", stop_.load()}};
    }

  private:
    uint32_t n_sp() const { return reader_.pooler().shape().n_sp; }
    bool out_of_time() const { return settings_.minutes > 0 && seconds_ > settings_.minutes * 60; }
    bool reciting() const { return step_ < settings_.recite_steps; }

    /// Linear warm-up, then a cosine down to final_lr.
    double rate() const {
        const auto step = static_cast<double>(step_);
        if (step < settings_.warmup) {
            return (step + 1) / settings_.warmup;
        }
        const double share = (step - settings_.warmup) /
                             std::max<double>(1, static_cast<double>(settings_.steps) - settings_.warmup);
        return settings_.final_lr +
               (1 - settings_.final_lr) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, share)));
    }

    /// The traces of this step and every random choice about them depend on the seed and the step alone.
    Batch next_batch() {
        Random random(settings_.seed * 0x9E3779B97F4A7C15ULL + step_);
        Batch batch;
        while (batch.raw_tokens < settings_.batch_tokens) {
            TraceView view = stream_.next();
            const size_t length = std::min<size_t>(view.tokens.size(), settings_.max_tokens);
            const TraceText text{.tokens = view.tokens.first(length),
                                 .pinned = std::min<size_t>(static_cast<size_t>(view.prompt), length - 1)};
            MemorySettings memory;
            memory.strategy = StrategyKind::soft_prompt;
            memory.refresh = settings_.layout;
            memory.chunk = settings_.chunk;
            memory.max_distant = settings_.max_distant;
            memory.window =
                settings_.window_min +
                static_cast<uint32_t>(random.below(settings_.window_max - settings_.window_min + 1));
            const double draw = random.uniform();
            Reading reading = draw < settings_.full_share                            ? Reading::full
                              : draw < settings_.full_share + settings_.window_share ? Reading::window
                                                                                     : Reading::memory;
            batch.raw_tokens += text.raw().size();
            batch.views.push_back(std::move(view));
            batch.texts.push_back(text);
            batch.readings.push_back(reciting() ? Reading::recite : reading);
            batch.memory.push_back(memory);
        }
        return batch;
    }

    ForwardPass make_pass(const Batch& batch) const {
        ForwardPass pass(n_sp());
        for (size_t i = 0; i < batch.texts.size(); ++i) {
            const TraceText& text = batch.texts[i];
            const MemorySettings& memory = batch.memory[i];
            const size_t length = text.raw().size();
            switch (batch.readings[i]) {
            case Reading::full:
                pass.add_stretch(text, 0, length, 0);
                break;
            case Reading::window:
                pass.add_carry(text, memory, plan_compactions(length, memory, 0, reader_.mass_of(text)),
                               false);
                break;
            case Reading::recite:
                pass.add_recital(text, 0, length);
                break;
            case Reading::memory: {
                const auto compactions = plan_compactions(length, memory, n_sp(), reader_.mass_of(text));
                if (memory.refresh == Layout::carry) {
                    pass.add_carry(text, memory, compactions);
                } else {
                    pass.add_rebuild(text, compactions);
                }
            }
            }
        }
        pass.finish();
        return pass;
    }

    /// The same model's hidden states with everything in view, at the rows that predict the same tokens.
    Tensor teacher_rows(const Batch& batch, const ForwardPass& student) {
        const at::NoGradGuard no_grad;
        ForwardPass pass(n_sp());
        for (const TraceText& text : batch.texts) {
            pass.add_stretch(text, 0, text.raw().size(), 0);
        }
        pass.finish();
        std::vector<std::vector<int64_t>> rows(batch.texts.size());
        for (size_t i = 0; i < batch.texts.size(); ++i) {
            rows[i].resize(batch.texts[i].raw().size());
        }
        for (const Prediction& prediction : pass.predictions()) {
            rows[prediction.trace][prediction.token] = prediction.row;
        }
        std::vector<int64_t> wanted;
        wanted.reserve(student.predictions().size());
        for (const Prediction& prediction : student.predictions()) {
            wanted.push_back(rows[prediction.trace][prediction.token]);
        }
        return reader_.hidden(pass, batch.texts)
            .index_select(0, at::tensor(at::ArrayRef<int64_t>(wanted), at::kLong));
    }

    /// Each prediction's share of the loss; they sum to one.
    Tensor weights_of(const Batch& batch, const ForwardPass& pass) const {
        std::vector<std::vector<float>> by_token(batch.texts.size());
        for (size_t i = 0; i < batch.texts.size(); ++i) {
            by_token[i].assign(batch.texts[i].raw().size(), 1.0F);
            for (const Answer& answer : batch.views[i].answers) {
                for (int32_t j = 0; j < answer.length; ++j) {
                    const size_t t = static_cast<size_t>(answer.offset + j) - batch.texts[i].pinned;
                    if (t < by_token[i].size()) {
                        by_token[i][t] = static_cast<float>(settings_.answer_weight);
                    }
                }
            }
        }
        std::vector<float> weights;
        weights.reserve(pass.predictions().size());
        for (const Prediction& prediction : pass.predictions()) {
            weights.push_back(by_token[prediction.trace][prediction.token]);
        }
        Tensor all = at::tensor(at::ArrayRef<float>(weights));
        return all / all.sum();
    }

    StepResult train_step() {
        const Batch batch = next_batch();
        const ForwardPass pass = make_pass(batch);
        const Tensor weights = weights_of(batch, pass);
        const Tensor teacher = settings_.kl > 0 && !reciting() ? teacher_rows(batch, pass) : Tensor();
        const Tensor hidden = reader_.hidden(pass, batch.texts);
        const TokenLosses losses = reader_.losses(pass, hidden, weights, teacher, settings_.kl);
        StepResult result{.loss = losses.nll.mean().item<double>(), .tokens = batch.raw_tokens};
        if (!std::isfinite(losses.loss.item<double>())) {
            stop_at_nan(batch);
        }
        losses.loss.backward();
        if (reciting()) {
            forget_adapter_gradients();
        }
        result.norm = adam_.clip(settings_.clip);
        adam_.step(rate());
        return result;
    }

    void forget_adapter_gradients() {
        for (const auto& [name, tensor] : adapter_parameters(reader_.model())) {
            tensor.mutable_grad().reset();
        }
    }

    [[noreturn]] void stop_at_nan(const Batch& batch) const {
        std::string lengths;
        for (const TraceText& text : batch.texts) {
            lengths += fmt::format("{}{}", lengths.empty() ? "" : ", ", text.tokens.size());
        }
        const auto newest = latest_checkpoint(settings_.out);
        fail(ErrorCode::internal,
             "step {}: the loss is not finite (a batch of {} traces of {} tokens). The last good checkpoint "
             "is {}; go on "
             "from it with a lower --lr or --clip",
             step_ + 1, batch.texts.size(), lengths, newest ? newest->string() : "none");
    }

    Json evaluate() {
        const EvaluationOptions options = evaluation_options(settings_);
        std::vector<TraceView> traces;
        // Spread over all folders, the same every time.
        const size_t count = std::min<size_t>(settings_.eval_traces, validation_.size());
        traces.reserve(count);
        for (size_t i = 0; i < count; ++i) {
            traces.push_back(validation_.trace(i * validation_.size() / count));
        }
        if (traces.empty()) {
            return {};
        }
        Json summary = summarise(score_traces(reader_, traces, options), options.memory);
        curve_.add({{"step", step_}, {"seconds", seconds_}, {"evaluation", summary}});
        curve_.draw(to_json(settings_));
        return summary;
    }

    void save() {
        Checkpoint checkpoint;
        for (const auto& group : trained_parameters(reader_, settings_)) {
            for (const auto& [name, tensor] : group.parameters) {
                checkpoint.tensors[name] = tensor;
            }
        }
        for (const auto& [name, tensor] : adam_.state()) {
            checkpoint.tensors["adam/" + name] = tensor;
        }
        checkpoint.state = {{"step", step_},
                            {"seconds", seconds_},
                            {"data", stream_.state()},
                            {"settings", to_json(settings_)}};
        write_checkpoint(checkpoint_path(settings_.out, step_), checkpoint);
        rotate_checkpoints(settings_.out, settings_.keep);
    }

    void resume(const std::filesystem::path& path) {
        const Checkpoint checkpoint = read_checkpoint(path);
        load_weights(reader_, path);
        std::map<std::string, Tensor> state;
        for (const auto& [name, tensor] : checkpoint.tensors) {
            if (name.starts_with("adam/")) {
                state[name.substr(5)] = tensor;
            }
        }
        adam_.load(state);
        stream_.restore(checkpoint.state.at("data"));
        step_ = checkpoint.state.at("step").get<uint64_t>();
        seconds_ = checkpoint.state.at("seconds").get<double>();
        curve_.forget_after(step_);
        log_info("Going on from {} (step {}, {} trained)", path.string(), step_, format_duration(seconds_));
    }

    Settings settings_;
    const std::atomic<bool>& stop_;
    GgufFile file_;
    Reader reader_;
    Adam adam_;
    TraceStream stream_;
    TraceStream validation_;
    Curve curve_;
    uint64_t step_ = 0;
    double seconds_ = 0;
};

} // namespace

Json train(const Settings& settings, const std::atomic<bool>& stop) {
    check(settings);
    std::filesystem::create_directories(settings.out);
    if (settings.threads > 0) {
        at::set_num_threads(static_cast<int>(settings.threads));
    }
    Trainer trainer(settings, stop);
    return trainer.run();
}

} // namespace spool::train
