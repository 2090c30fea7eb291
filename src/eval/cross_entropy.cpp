#include "eval/cross_entropy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/log_sum_exp.h"
#include "core/random.h"

namespace spool {

namespace {

std::vector<Token> concatenate(std::initializer_list<std::span<const Token>> parts) {
    std::vector<Token> all;
    for (const auto part : parts) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

/// Scores one record after another in one pool.
class Scorer {
  public:
    Scorer(const Model& model, const Bundle* bundle, const CrossEntropyOptions& options,
           const std::vector<Record>& records)
        : refresh_(options.refresh), records_(records),
          pool_(model, bundle, sized_for(options.pool, bundle, records)) {
        add("full", [this](const Record& r) { return read_all(r.prompt, past(r), r.target); });
        add("window", [this](const Record& r) { return read_all(r.prompt, r.recent, r.target); });
        add("stream", [this](const Record& r) { return stream(r, StrategyKind::window, nullptr); });
        if (bundle != nullptr) {
            add_memory_arms();
        }
        select(options.arms);
    }

    ArmValues score(size_t index) {
        index_ = index;
        ArmValues values;
        for (const auto& [name, arm] : arms_) {
            values[name] = arm(records_[index]);
        }
        return values;
    }

  private:
    using Arm = std::function<double(const Record&)>;

    void add(const std::string& name, Arm arm) { arms_.emplace_back(name, std::move(arm)); }

    void add_memory_arms() {
        add("window_equal", [this](const Record& r) {
            const auto all = past(r);
            const size_t larger = r.recent.size() + pool_.pooler()->shape().n_sp;
            return read_all(r.prompt, std::span(all).last(std::min(all.size(), larger)), r.target);
        });
        add("soft_prompt", [this](const Record& r) { return with_memory(r, nullptr); });
        add("noise", [this](const Record& r) {
            const std::vector<float> vectors = noise_like(r, index_);
            return with_memory(r, &vectors);
        });
        add("other", [this](const Record& r) {
            const std::vector<float> vectors = pool_tokens(records_[(index_ + 1) % records_.size()].distant);
            return with_memory(r, &vectors);
        });
        add("full_base", [this](const Record& r) { return without_adapter(r.prompt, past(r), r.target); });
        add("window_base", [this](const Record& r) { return without_adapter(r.prompt, r.recent, r.target); });
    }

    void select(const std::vector<std::string>& wanted) {
        for (const auto& name : wanted) {
            if (std::ranges::none_of(arms_, [&](const auto& arm) { return arm.first == name; })) {
                fail(ErrorCode::invalid_argument,
                     "there is no arm \"{}\" here (arms with memory need --bundle)", name);
            }
        }
        if (!wanted.empty()) {
            std::erase_if(
                arms_, [&](const auto& arm) { return std::ranges::find(wanted, arm.first) == wanted.end(); });
        }
    }

    static std::vector<Token> past(const Record& record) {
        return concatenate({record.distant, record.recent});
    }

    static PoolOptions sized_for(PoolOptions options, const Bundle* bundle,
                                 const std::vector<Record>& records) {
        size_t longest = 0;
        for (const Record& r : records) {
            longest =
                std::max({longest, r.prompt.size() + r.distant.size() + r.recent.size() + r.target.size(),
                          r.prompt.size() + 2 * r.recent.size()});
        }
        // One soft prompt in use and one being written come on top of the tokens.
        constexpr size_t vectors = 256;
        options.memory.strategy = bundle != nullptr ? StrategyKind::soft_prompt : StrategyKind::full;
        options.memory.full_length = static_cast<uint32_t>(longest + vectors);
        options.memory.pin = 0;
        options.memory.window = 1;
        options.memory.chunk = 256;
        options.cells = static_cast<uint32_t>(longest + vectors);
        options.sessions = 1;
        options.scoring = true;
        return options;
    }

    /// Mean over the target of a session that reads prompt (pinned), then the context, then the target.
    double read_session(const MemorySettings& memory, std::span<const Token> prompt,
                        std::span<const Token> context, std::span<const Token> target) {
        pool_.reconfigure(memory);
        const auto session = pool_.open();
        const auto tokens = concatenate({prompt, context, target});
        const size_t first = tokens.size() - target.size();
        double sum = 0;
        const LogitsVisitor visitor{first - 1, [&](size_t index, std::span<const float> logits) {
                                        if (index + 1 < tokens.size()) {
                                            sum += negative_log_likelihood(logits, tokens[index + 1]);
                                        }
                                    }};
        session->read(tokens, &visitor);
        return sum / static_cast<double>(target.size());
    }

    double read_all(std::span<const Token> prompt, std::span<const Token> context,
                    std::span<const Token> target) {
        MemorySettings memory;
        memory.strategy = StrategyKind::full;
        memory.full_length = pool_.memory().cells;
        memory.pin = static_cast<uint32_t>(prompt.size());
        return read_session(memory, prompt, context, target);
    }

    double without_adapter(std::span<const Token> prompt, std::span<const Token> context,
                           std::span<const Token> target) {
        pool_.context().enable_adapter(false);
        const double value = read_all(prompt, context, target);
        pool_.context().enable_adapter(true);
        return value;
    }

    /// The record streamed with C = rw = |recent|; `vectors` replaces every soft prompt.
    double stream(const Record& record, StrategyKind strategy, const std::vector<float>* vectors) {
        MemorySettings memory;
        memory.strategy = strategy;
        memory.refresh = Layout::carry;
        memory.pin = static_cast<uint32_t>(record.prompt.size());
        memory.window = static_cast<uint32_t>(record.recent.size());
        memory.chunk = memory.window;
        memory.max_distant = std::numeric_limits<int32_t>::max();
        pool_.replace_soft_prompt(vectors);
        const double value = read_session(memory, record.prompt, past(record), record.target);
        pool_.replace_soft_prompt(nullptr);
        return value;
    }

    double with_memory(const Record& record, const std::vector<float>* vectors) {
        if (refresh_ == Layout::carry) {
            return stream(record, StrategyKind::soft_prompt, vectors);
        }
        return one_forward(record, vectors != nullptr ? *vectors : pool_tokens(record.distant));
    }

    /// [prompt | vectors | recent | target] at consecutive positions.
    double one_forward(const Record& record, const std::vector<float>& vectors) {
        constexpr SequenceId sequence = 0;
        Context& context = pool_.context();
        Position position = 0;
        const auto feed = [&](std::span<const Token> tokens) {
            Batch batch;
            for (const Token token : tokens) {
                batch.add(token, position++, sequence, false);
            }
            context.decode(batch);
        };
        feed(record.prompt);
        const auto width = static_cast<size_t>(pool_.model().facts().width);
        Batch rows(static_cast<int64_t>(width));
        for (size_t i = 0; i < vectors.size(); i += width) {
            rows.add(std::span(vectors).subspan(i, width), position++, sequence, false);
        }
        context.decode(rows);
        feed(std::span(record.recent).first(record.recent.size() - 1));

        // The last recent token and the target, in steps that fit one decode: row r predicts target[r].
        std::vector<Token> inputs{record.recent.back()};
        inputs.insert(inputs.end(), record.target.begin(), record.target.end() - 1);
        const size_t step = pool_.options().batch;
        double sum = 0;
        for (size_t first = 0; first < inputs.size(); first += step) {
            Batch batch;
            const size_t count = std::min(step, inputs.size() - first);
            for (size_t i = 0; i < count; ++i) {
                batch.add(inputs[first + i], position++, sequence, true);
            }
            context.decode(batch);
            for (size_t i = 0; i < count; ++i) {
                sum += negative_log_likelihood(context.logits(i), record.target[first + i]);
            }
        }
        context.remove(sequence, -1, -1);
        return sum / static_cast<double>(record.target.size());
    }

    std::vector<float> pool_tokens(const std::vector<Token>& tokens) {
        const TokenRows& rows = pool_.model().token_rows();
        return pool_.pooler()
            ->pool(tokens.size(),
                   [&](size_t first, size_t count, float* out) {
                       rows.read(std::span(tokens).subspan(first, count), out);
                   })
            .soft_prompt;
    }

    std::vector<float> noise_like(const Record& record, uint64_t seed) {
        std::vector<float> vectors = pool_tokens(record.distant);
        const auto width = static_cast<size_t>(pool_.model().facts().width);
        Random random(seed);
        for (size_t i = 0; i < vectors.size(); i += width) {
            const auto row = std::span(vectors).subspan(i, width);
            double old_norm = 0;
            double new_norm = 0;
            for (float& value : row) {
                old_norm += double{value} * value;
                value = static_cast<float>(random.normal());
                new_norm += double{value} * value;
            }
            const auto scale = static_cast<float>(std::sqrt(old_norm / new_norm));
            for (float& value : row) {
                value *= scale;
            }
        }
        return vectors;
    }

    Layout refresh_;
    const std::vector<Record>& records_;
    SessionPool pool_;
    std::vector<std::pair<std::string, Arm>> arms_;
    size_t index_ = 0; ///< of the record being scored
};

double recovered_share(const std::map<std::string, std::vector<double>>& columns,
                       std::span<const size_t> indices) {
    const auto mean = [&](const char* arm) { return mean_over(columns.at(arm), indices); };
    const double full = std::min(mean("full"), mean("full_base"));
    const double window = std::min(mean("window"), mean("window_base"));
    return window == full ? std::numeric_limits<double>::quiet_NaN()
                          : (window - mean("soft_prompt")) / (window - full);
}

} // namespace

double negative_log_likelihood(std::span<const float> logits, Token target) {
    return log_sum_exp(logits) - static_cast<double>(logits[static_cast<size_t>(target)]);
}

CrossEntropyResult evaluate_cross_entropy(const Model& model, const Bundle* bundle,
                                          const CrossEntropyOptions& options,
                                          const std::vector<Record>& records) {
    Scorer scorer(model, bundle, options, records);
    CrossEntropyResult result;
    for (size_t i = 0; i < records.size(); ++i) {
        result.records.push_back(scorer.score(i));
        if (options.on_record && !options.on_record(i, result.records.back())) {
            break;
        }
    }
    std::map<std::string, std::vector<double>> columns;
    for (const ArmValues& record : result.records) {
        for (const auto& [arm, value] : record) {
            columns[arm].push_back(value);
        }
    }
    const size_t count = result.records.size();
    for (const auto& [arm, values] : columns) {
        result.arms[arm] =
            bootstrap(count, [&](std::span<const size_t> drawn) { return mean_over(values, drawn); });
    }
    const std::array needed = {"full", "full_base", "window", "window_base", "soft_prompt"};
    result.recovered.value = std::numeric_limits<double>::quiet_NaN();
    if (std::ranges::all_of(needed, [&](const char* arm) { return columns.contains(arm); })) {
        result.recovered =
            bootstrap(count, [&](std::span<const size_t> drawn) { return recovered_share(columns, drawn); });
    }
    return result;
}

Json to_json(const CrossEntropyResult& result) {
    Json json = {{"records", result.records.size()}};
    for (const auto& [arm, interval] : result.arms) {
        json[arm] = to_json(interval, "mean");
    }
    if (!std::isnan(result.recovered.value)) {
        json["recovered"] = to_json(result.recovered, "value");
    }
    return json;
}

} // namespace spool
