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
#include "train/workers.h"

namespace spool::train {

namespace {

enum class Reading { memory, full, window, recite };

/// One step's traces, and how each is read.
struct Batch {
    std::vector<TraceView> views;
    std::vector<TraceText> texts;
    std::vector<Reading> readings;
    std::vector<MemorySettings> memory;
    size_t raw_tokens = 0; ///< of the whole step, over all processes
};

/// What one step came to.
struct StepResult {
    double loss = 0; ///< mean nats a token
    size_t tokens = 0;
    double norm = 0;
};

uint32_t between(uint32_t lowest, uint32_t highest, Random& random) {
    return lowest + static_cast<uint32_t>(random.below(highest - lowest + 1));
}

class Trainer {
  public:
    Trainer(const Settings& settings, const Workers& workers, const std::atomic<bool>& stop)
        : settings_(settings), workers_(workers), stop_(stop), file_(settings.model),
          reader_(make_reader(settings, file_)),
          adam_(trained_parameters(reader_, settings),
                {.weight_decay = settings.weight_decay, .eight_bit = settings.adam8}),
          stream_(settings.data, "train", vocab_sha256(file_), settings.seed),
          validation_(settings.data, "val", vocab_sha256(file_), settings.seed), curve_(settings.out) {
        if (const auto newest = latest_checkpoint(settings.out)) {
            resume(*newest);
        }
        check_same_step();
    }

    Json run() {
        Progress progress("training", settings_.steps, step_);
        StepResult last;
        Json evaluation;
        while (step_ < settings_.steps && !any_wants_to_stop()) {
            const Stopwatch watch;
            last = train_step();
            seconds_ += watch.seconds();
            ++step_;
            if (!workers_.leads()) {
                continue;
            }
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
        if (workers_.leads()) {
            save();
            curve_.draw(to_json(settings_));
        }
        return {{"steps", step_},           {"loss", last.loss},
                {"seconds", seconds_},      {"checkpoint", checkpoint_path(settings_.out, step_).string()},
                {"evaluation", evaluation}, {"interrupted", interrupted_}};
    }

  private:
    bool out_of_time() const { return settings_.minutes > 0 && seconds_ > settings_.minutes * 60; }
    bool any_wants_to_stop() {
        const Tensor wishes = at::zeros({2}, at::kFloat);
        wishes[0] = stop_ ? 1 : 0;
        wishes[1] = out_of_time() ? 1 : 0;
        workers_.sum({wishes});
        interrupted_ = wishes[0].item<float>() > 0;
        return wishes.sum().item<float>() > 0;
    }
    void check_same_step() const {
        const Tensor sum = at::scalar_tensor(static_cast<float>(step_));
        workers_.sum({sum});
        if (sum.item<float>() != static_cast<float>(step_) * static_cast<float>(workers_.size())) {
            fail(ErrorCode::invalid_argument,
                 "{}: the processes found different checkpoints there; it must be a folder that all share",
                 settings_.out.string());
        }
    }
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

    /// The traces of this step and every random choice about them depend on the seed and the step alone, not
    /// on the number of processes; each takes its share.
    Batch next_batch() {
        Random random(settings_.seed * 0x9E3779B97F4A7C15ULL + step_);
        Batch batch;
        while (batch.raw_tokens < settings_.batch_tokens) {
            TraceView view = stream_.next();
            const size_t length = std::min<size_t>(view.tokens.size(), settings_.max_tokens);
            const TraceText text{.tokens = view.tokens.first(length),
                                 .pinned = std::min<size_t>(static_cast<size_t>(view.prompt), length - 1)};
            MemorySettings memory = memory_settings(settings_);
            memory.window = between(settings_.window_min, settings_.window_max, random);
            memory.max_distant = settings_.max_distant_min < settings_.max_distant
                                     ? between(settings_.max_distant_min, settings_.max_distant, random)
                                     : settings_.max_distant;
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
        return workers_.size() == 1 ? batch : share_of(batch);
    }

    /// Longest first, each to the process that has least.
    Batch share_of(const Batch& batch) const {
        std::vector<size_t> order(batch.texts.size());
        std::iota(order.begin(), order.end(), 0U);
        std::ranges::stable_sort(order, std::ranges::greater(),
                                 [&](size_t i) { return batch.texts[i].tokens.size(); });
        std::vector<size_t> loads(static_cast<size_t>(workers_.size()));
        Batch share;
        share.raw_tokens = batch.raw_tokens;
        for (const size_t i : order) {
            const auto least = std::ranges::min_element(loads);
            *least += batch.texts[i].tokens.size();
            if (least - loads.begin() == workers_.rank()) {
                share.views.push_back(batch.views[i]);
                share.texts.push_back(batch.texts[i]);
                share.readings.push_back(batch.readings[i]);
                share.memory.push_back(batch.memory[i]);
            }
        }
        return share;
    }

    ForwardPass make_pass(const Batch& batch) const {
        ForwardPass pass(reader_.vectors());
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
                const auto compactions =
                    plan_compactions(length, memory, reader_.vectors(), reader_.mass_of(text));
                if (memory.strategy == StrategyKind::slots) {
                    pass.add_slots(text, memory, compactions);
                } else if (memory.refresh == Layout::carry) {
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
        ForwardPass pass(reader_.vectors());
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
            .index_select(0, at::tensor(at::ArrayRef<int64_t>(wanted), at::kLong).to(reader_.device()));
    }

    /// Nats that everything in view is worth to the model as it came, against the window alone: by trace and
    /// raw token, never below 0.
    std::vector<std::vector<float>> help_of(const Batch& batch) {
        const at::NoGradGuard no_grad;
        const AdaptersAside base(reader_.model());
        const auto losses_of = [&](Reading reading) {
            Batch same = batch;
            same.readings.assign(batch.texts.size(), reading);
            const ForwardPass pass = make_pass(same);
            const auto& predictions = pass.predictions();
            const Tensor nll = reader_
                                   .losses(pass, reader_.hidden(pass, batch.texts),
                                           at::ones({std::ssize(predictions)}, at::kFloat))
                                   .nll.to(at::kCPU);
            std::vector<std::vector<float>> by_token(batch.texts.size());
            for (size_t i = 0; i < batch.texts.size(); ++i) {
                by_token[i].resize(batch.texts[i].raw().size());
            }
            for (size_t i = 0; i < predictions.size(); ++i) {
                by_token[predictions[i].trace][predictions[i].token] =
                    nll[static_cast<int64_t>(i)].item<float>();
            }
            return by_token;
        };
        auto help = losses_of(Reading::window);
        const auto full = losses_of(Reading::full);
        for (size_t i = 0; i < help.size(); ++i) {
            for (size_t t = 0; t < help[i].size(); ++t) {
                help[i][t] = std::max(0.0F, help[i][t] - full[i][t]);
            }
        }
        return help;
    }

    /// Each prediction's share of the loss; over all processes they sum to one.
    Tensor weights_of(const Batch& batch, const ForwardPass& pass) {
        std::vector<std::vector<float>> by_token(batch.texts.size());
        for (size_t i = 0; i < batch.texts.size(); ++i) {
            by_token[i].assign(batch.texts[i].raw().size(), 1.0F);
        }
        if (settings_.help_weight > 0 && !batch.texts.empty()) {
            const auto help = help_of(batch);
            for (size_t i = 0; i < help.size(); ++i) {
                for (size_t t = 0; t < help[i].size(); ++t) {
                    by_token[i][t] += static_cast<float>(settings_.help_weight) * help[i][t];
                }
            }
        }
        for (size_t i = 0; i < batch.texts.size(); ++i) {
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
        const Tensor all = at::tensor(at::ArrayRef<float>(weights));
        const Tensor total = all.sum();
        workers_.sum({total});
        return all / total;
    }

    StepResult train_step() {
        const Batch batch = next_batch();
        const ForwardPass pass = make_pass(batch);
        const Tensor weights = weights_of(batch, pass);
        Tensor nll = at::zeros({2}, at::kFloat); // sum and count
        if (!batch.texts.empty()) {
            const Tensor teacher = settings_.kl > 0 && !reciting() ? teacher_rows(batch, pass) : Tensor();
            const Tensor hidden = reader_.hidden(pass, batch.texts);
            const TokenLosses losses = reader_.losses(pass, hidden, weights, teacher, settings_.kl);
            losses.loss.backward();
            nll[0] = losses.nll.sum();
            nll[1] = losses.nll.numel();
        }
        if (reciting()) {
            forget_adapter_gradients();
        }
        sum_gradients(nll);
        const StepResult result{.loss = (nll[0] / nll[1]).item<double>(),
                                .tokens = batch.raw_tokens,
                                .norm = adam_.clip(settings_.clip)};
        if (!std::isfinite(result.loss) || !std::isfinite(result.norm)) {
            stop_at_nan(batch);
        }
        adam_.step(rate());
        return result;
    }

    /// Over all processes, of every parameter that has a gradient in any of them; `also` with them.
    void sum_gradients(const Tensor& also) {
        if (workers_.size() == 1) {
            return;
        }
        std::vector<Tensor> parameters;
        for (const auto& group : trained_parameters(reader_, settings_)) {
            for (const auto& [name, tensor] : group.parameters) {
                parameters.push_back(tensor);
            }
        }
        const Tensor present = at::zeros({std::ssize(parameters)}, at::kFloat);
        std::vector<Tensor> sums = {also, present};
        for (size_t i = 0; i < parameters.size(); ++i) {
            Tensor& gradient = parameters[i].mutable_grad();
            present[static_cast<int64_t>(i)] = gradient.defined() ? 1 : 0;
            if (!gradient.defined()) {
                gradient = at::zeros_like(parameters[i]);
            }
            sums.push_back(gradient);
        }
        workers_.sum(sums);
        for (size_t i = 0; i < parameters.size(); ++i) {
            if (present[static_cast<int64_t>(i)].item<float>() == 0) {
                parameters[i].mutable_grad().reset();
            }
        }
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
    const Workers& workers_;
    const std::atomic<bool>& stop_;
    GgufFile file_;
    Reader reader_;
    Adam adam_;
    TraceStream stream_;
    TraceStream validation_;
    Curve curve_;
    uint64_t step_ = 0;
    double seconds_ = 0;
    bool interrupted_ = false;
};

} // namespace

Json train(const Settings& settings, const std::atomic<bool>& stop) {
    check(settings);
    std::filesystem::create_directories(settings.out);
    if (settings.threads > 0) {
        at::set_num_threads(static_cast<int>(settings.threads));
    }
    const Workers workers = Workers::from_environment();
    Trainer trainer(settings, workers, stop);
    return trainer.run();
}

} // namespace spool::train
