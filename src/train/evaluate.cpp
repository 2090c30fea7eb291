#include "train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/bootstrap.h"
#include "core/random.h"

namespace spool::train {

namespace {

TraceText text_of(const TraceView& trace, uint32_t max_tokens) {
    const size_t length = std::min<size_t>(trace.tokens.size(), max_tokens);
    return {.tokens = trace.tokens.first(length),
            .pinned = std::min<size_t>(static_cast<size_t>(trace.prompt), length)};
}

/// Runs the arms of one trace.
class TraceScorer {
  public:
    TraceScorer(Reader& reader, const EvaluationOptions& options) : reader_(reader), options_(options) {}

    TraceScore score(const TraceView& trace, const TraceView& other) {
        trace_ = &trace;
        text_ = text_of(trace, options_.max_tokens);
        score_ = {};
        for (const Answer& answer : trace.answers) {
            if (answer.offset + answer.length <= std::ssize(text_.tokens)) {
                score_.distances.push_back(answer.distance);
            }
        }
        const MemorySettings& memory = options_.memory;
        compactions_ = plan_compactions(text_.raw().size(), memory, n_sp(), reader_.mass_of(text_));

        run("full", full());
        if (!options_.full_only) {
            run("window", window(memory.window));
            ForwardPass with_memory = remembered();
            run("memory", with_memory);
            if (options_.all_arms) {
                run("window_equal", window(memory.window + memory_cells()));
                if (!with_memory.pools().empty()) {
                    const Tensor vectors = reader_.memory_vectors(with_memory, std::span(&text_, 1));
                    run("noise", with_memory, noise_like(vectors));
                    if (!reader_.has_slots()) { // what slots hold is in the cache, not in their vectors
                        run("other", with_memory, vectors_of(other, vectors));
                    }
                }
            }
        }
        if (options_.all_arms || options_.full_only) {
            const AdaptersAside base(reader_.model());
            run("full_base", full());
            if (options_.all_arms) {
                run("window_base", window(memory.window));
            }
        }
        return std::move(score_);
    }

  private:
    uint32_t n_sp() const { return reader_.vectors(); }

    /// The most cells that memory takes in this trace.
    uint32_t memory_cells() const {
        const auto written = static_cast<uint32_t>(compactions_.size()) * n_sp();
        return reader_.has_slots() ? std::min(written, options_.memory.max_slots) : n_sp();
    }

    ForwardPass full() const {
        ForwardPass pass(n_sp());
        pass.add_stretch(text_, 0, text_.raw().size(), 0);
        pass.finish();
        return pass;
    }

    ForwardPass window(uint32_t size) const {
        MemorySettings memory = options_.memory;
        memory.refresh = Layout::carry;
        memory.window = size;
        memory.max_distant = std::numeric_limits<uint32_t>::max();
        ForwardPass pass(n_sp());
        pass.add_carry(text_, memory, plan_compactions(text_.raw().size(), memory, 0, {}), false);
        pass.finish();
        return pass;
    }

    ForwardPass remembered() const {
        ForwardPass pass(n_sp());
        if (reader_.has_slots()) {
            pass.add_slots(text_, options_.memory, compactions_);
        } else if (options_.memory.refresh == Layout::carry) {
            pass.add_carry(text_, options_.memory, compactions_);
        } else {
            pass.add_rebuild(text_, compactions_);
        }
        pass.finish();
        return pass;
    }

    void run(const std::string& arm, const ForwardPass& pass, const Tensor& vectors = {}) {
        const Tensor hidden = reader_.hidden(pass, std::span(&text_, 1), vectors);
        const auto& predictions = pass.predictions();
        const Tensor nll =
            reader_.losses(pass, hidden, at::ones({static_cast<int64_t>(predictions.size())}, at::kFloat))
                .nll.to(at::kCPU);
        auto& values = score_.nll[arm];
        values.assign(text_.raw().size(), 0.0F);
        std::vector<size_t> by_token(text_.raw().size(), predictions.size());
        for (size_t i = 0; i < predictions.size(); ++i) {
            values[predictions[i].token] = nll[static_cast<int64_t>(i)].item<float>();
            by_token[predictions[i].token] = i;
        }
        for (size_t a = 0; a < score_.distances.size(); ++a) {
            const Answer& answer = trace_->answers[a];
            std::vector<size_t> which;
            which.reserve(static_cast<size_t>(answer.length));
            for (int32_t j = 0; j < answer.length; ++j) {
                which.push_back(by_token[static_cast<size_t>(answer.offset + j) - text_.pinned]);
            }
            score_.answers[arm].push_back(reader_.correct(pass, hidden, which));
        }
    }

    Tensor noise_like(const Tensor& vectors) const {
        Random random(options_.seed);
        Tensor noise = at::empty(vectors.sizes(), at::kFloat);
        for (float& value : std::span(noise.mutable_data_ptr<float>(), static_cast<size_t>(noise.numel()))) {
            value = static_cast<float>(random.normal());
        }
        noise = noise.to(vectors.device());
        return noise / noise.norm(2, -1, true) * vectors.norm(2, -1, true);
    }

    /// The last soft prompt of another trace, in place of every one of this trace's.
    Tensor vectors_of(const TraceView& other, const Tensor& vectors) const {
        const TraceText text = text_of(other, options_.max_tokens);
        const auto compactions =
            plan_compactions(text.raw().size(), options_.memory, n_sp(), reader_.mass_of(text));
        if (compactions.empty()) {
            return noise_like(vectors);
        }
        ForwardPass pass(n_sp());
        pass.add_rebuild(text, {compactions.back()});
        pass.finish();
        const Tensor one = reader_.memory_vectors(pass, std::span(&text, 1));
        return one.repeat({vectors.size(0) / one.size(0), 1});
    }

    Reader& reader_;
    const EvaluationOptions& options_;
    const TraceView* trace_ = nullptr;
    TraceText text_;
    std::vector<PlannedCompaction> compactions_;
    TraceScore score_;
};

/// Sums over the tokens of one trace that count.
struct Sum {
    double value = 0;
    double count = 0;
};

Sum deep_sum(const TraceScore& score, const std::string& arm, size_t from) {
    Sum sum;
    const auto& values = score.nll.at(arm);
    for (size_t t = from; t < values.size(); ++t) {
        sum.value += double{values[t]};
        sum.count += 1;
    }
    return sum;
}

/// Means over traces of the numbers of one arm: sum of nats / tokens.
double pooled_mean(const std::vector<Sum>& sums, std::span<const size_t> drawn) {
    Sum total;
    for (const size_t i : drawn) {
        total.value += sums[i].value;
        total.count += sums[i].count;
    }
    return total.value / total.count;
}

/// Whole answers right, and tokens of answers right.
Json answer_shares(const std::vector<TraceScore>& scores, const std::string& arm) {
    std::vector<Sum> whole(scores.size());
    std::vector<Sum> tokens(scores.size());
    for (size_t i = 0; i < scores.size(); ++i) {
        const auto found = scores[i].answers.find(arm);
        if (found == scores[i].answers.end()) {
            continue;
        }
        for (const auto& answer : found->second) {
            const auto right = std::ranges::count(answer, true);
            whole[i].value += right == std::ssize(answer) ? 1 : 0;
            whole[i].count += 1;
            tokens[i].value += static_cast<double>(right);
            tokens[i].count += static_cast<double>(answer.size());
        }
    }
    const auto share = [&](const std::vector<Sum>& sums) {
        return bootstrap(
            scores.size(), [&](std::span<const size_t> drawn) { return pooled_mean(sums, drawn); }, 2000);
    };
    return {{"exact", to_json(share(whole), "mean")}, {"digits", to_json(share(tokens), "mean")}};
}

} // namespace

EvaluationOptions evaluation_options(const Settings& settings) {
    EvaluationOptions options;
    options.memory = memory_settings(settings);
    options.max_tokens = settings.max_tokens;
    return options;
}

std::vector<TraceScore> score_traces(Reader& reader, const std::vector<TraceView>& traces,
                                     const EvaluationOptions& options) {
    const at::NoGradGuard no_grad;
    TraceScorer scorer(reader, options);
    std::vector<TraceScore> scores;
    for (size_t i = 0; i < traces.size(); ++i) {
        scores.push_back(scorer.score(traces[i], traces[(i + 1) % traces.size()]));
        if (options.on_trace && !options.on_trace(i + 1)) {
            break;
        }
    }
    return scores;
}

Json summarise(const std::vector<TraceScore>& scores, const MemorySettings& memory) {
    // A trace counts from rw + 512 on; where none is that long, from where the window has moved on.
    constexpr size_t deep_margin = 512;
    const auto longest =
        std::ranges::max(scores, {}, [](const TraceScore& s) { return s.nll.at("full").size(); });
    const bool long_enough = longest.nll.at("full").size() > memory.window + deep_margin;
    const size_t from = memory.window + (long_enough ? deep_margin : size_t{2} * memory.chunk);

    std::map<std::string, std::vector<Sum>> sums;
    for (const auto& [arm, values] : scores.front().nll) {
        for (const TraceScore& score : scores) {
            sums[arm].push_back(score.nll.contains(arm) ? deep_sum(score, arm, from) : Sum{});
        }
    }
    Json deep = Json::object();
    for (const auto& [arm, of_traces] : sums) {
        deep[arm] =
            to_json(bootstrap(
                        scores.size(),
                        [&](std::span<const size_t> drawn) { return pooled_mean(of_traces, drawn); }, 2000),
                    "mean");
    }
    const auto best = [&](const char* arm, std::span<const size_t> drawn) {
        const double adapted = pooled_mean(sums.at(arm), drawn);
        const auto base = sums.find(std::string(arm) + "_base");
        return base == sums.end() ? adapted : std::min(adapted, pooled_mean(base->second, drawn));
    };
    const bool has_memory = sums.contains("memory");
    const Interval recovered = !has_memory ? Interval{}
                                           : bootstrap(
                                                 scores.size(),
                                                 [&](std::span<const size_t> drawn) {
                                                     const double window = best("window", drawn);
                                                     return (window - pooled_mean(sums.at("memory"), drawn)) /
                                                            (window - best("full", drawn));
                                                 },
                                                 2000);

    Json by_distance = Json::array();
    constexpr size_t bin = 512;
    for (size_t first = 0; first < longest.nll.at("full").size(); first += bin) {
        Json row = {{"from", first}};
        for (const auto& [arm, unused] : sums) {
            Sum sum;
            for (const TraceScore& score : scores) {
                const auto& values = score.nll.at(arm);
                for (size_t t = first; t < std::min(first + bin, values.size()); ++t) {
                    sum.value += double{values[t]};
                    sum.count += 1;
                }
            }
            row[arm] = sum.value / sum.count;
            row["tokens"] = sum.count;
        }
        by_distance.push_back(row);
    }
    Json result = {
        {"traces", scores.size()}, {"deep_from", from}, {"deep", deep}, {"by_distance", by_distance}};
    if (has_memory) {
        result["recovered"] = to_json(recovered, "value");
    }
    if (std::ranges::any_of(scores, [](const TraceScore& s) { return !s.distances.empty(); })) {
        Json answers = Json::object();
        for (const auto& [arm, unused] : sums) {
            answers[arm] = answer_shares(scores, arm);
        }
        result["answers"] = answers;
    }
    return result;
}

} // namespace spool::train
