#include "corpus/prepare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/parallel.h"
#include "core/staged_folder.h"
#include "corpus/record_source.h"
#include "corpus/shapes.h"
#include "corpus/shard_writer.h"
#include "corpus/split.h"

namespace spool {

namespace {

constexpr const char* index_name = "index.json";

void check_options(const PrepareOptions& options) {
    if (std::isnan(options.val_share) || options.val_share < 0 || options.val_share >= 1) {
        fail(ErrorCode::invalid_argument, "--val-share {}: expected a share of at least 0 and below 1",
             options.val_share);
    }
    if (options.shard_tokens < 1 || options.shard_tokens > largest_shard) {
        fail(ErrorCode::invalid_argument, "--shard-tokens {}: expected 1 to {}", options.shard_tokens,
             largest_shard);
    }
    if (options.max_tokens > 0 && options.max_tokens < options.min_tokens) {
        fail(ErrorCode::invalid_argument, "--max-tokens {} is below --min-tokens {}: no trace fits",
             options.max_tokens, options.min_tokens);
    }
}

/// The destination being written, and what index.json will say of it.
class Output {
  public:
    Output(const PrepareOptions& options, const Encoder& encoder)
        : options_(options), encoder_(encoder), folder_(options.destination, index_name, options.overwrite),
          train_(folder_.path(), "train", options.base.vocab_sha256, options.shard_tokens),
          val_(folder_.path(), "val", options.base.vocab_sha256, options.shard_tokens) {}

    void add(std::span<const Token> tokens, int32_t prompt, std::span<const Answer> answers,
             bool validation) {
        (validation ? val_ : train_).add(tokens, prompt, answers);
    }
    uint64_t traces() const { return train_.traces() + val_.traces(); }
    bool is_full() const { return options_.limit > 0 && traces() >= options_.limit; }

    void reject(const std::string& reason, uint64_t count, const std::string& example) {
        Rejected& entry = rejected_[reason];
        entry.count += count;
        if (entry.example.empty()) {
            entry.example = example;
        }
    }
    const std::map<std::string, Rejected>& rejected() const { return rejected_; }

    /// Writes what is left and gives the folder its name.
    PrepareReport finish(Json settings) {
        const ThinkTags tags = encoder_.tags();
        settings["val_share"] = options_.val_share;
        settings["shard_tokens"] = options_.shard_tokens;
        settings["prompt"] = encoder_.prompt({{"user", "{prompt}"}}).text;
        settings["think_tags"] = {tags.start, tags.end};
        settings["end_token"] = encoder_.end();

        Json rejected = Json::object();
        for (const auto& [reason, entry] : rejected_) {
            rejected[reason] = entry.count;
        }
        Json index = {{"format", "spool-shards"},
                      {"version", shards_version},
                      {"base",
                       {{"architecture", options_.base.architecture},
                        {"name", options_.base.name},
                        {"vocab_sha256", options_.base.vocab_sha256},
                        {"vocab_size", options_.vocab_size}}},
                      {"splits", {{"train", train_.finish()}, {"val", val_.finish()}}},
                      {"rejected", std::move(rejected)},
                      {"settings", std::move(settings)}};
        write_text(folder_.path() / index_name, json_text(index, 2) + "\n");
        folder_.commit();
        return {std::move(index), rejected_};
    }

    void report_progress(uint64_t done, uint64_t total) const {
        if (options_.on_progress && !options_.on_progress(done, total)) {
            fail(ErrorCode::interrupted, "stopped; {} is as it was before", options_.destination.string());
        }
    }

  private:
    const PrepareOptions& options_;
    const Encoder& encoder_;
    StagedFolder folder_;
    ShardWriter train_;
    ShardWriter val_;
    std::map<std::string, Rejected> rejected_;
};

/// Passes traces on to the output, or counts why not. Replies are tokenised in batches, on several threads.
class Gate {
  public:
    Gate(const PrepareOptions& options, const Encoder& encoder, Output& output)
        : options_(options), encoder_(encoder), output_(output), tags_(encoder.tags()) {}

    void add(const Trace& trace, const std::string& where) {
        if (!seen_.insert(identity(trace)).second) {
            output_.reject("duplicate", 1, where + ": the same prompt and reply came before");
        } else if (has_tags(trace)) {
            output_.reject("stray_tags", 1,
                           where + ": a " + tags_.start + " or " + tags_.end + " inside the text");
        } else if (const auto role = role_with_control_token(trace)) {
            output_.reject("control_tokens", 1, where + ": the text of " + *role + " spells a control token");
        } else {
            encode_prompt(trace, where);
        }
    }

    /// True when enough is waiting for flush() to be worth its while.
    bool has_batch() const { return waiting_bytes_ >= batch_bytes; }

    /// Tokenises what is waiting and passes it on, in the order it came.
    void flush() {
        parallel_for(waiting_.size(), options_.threads,
                     [&](size_t i) { waiting_[i].reply_tokens = encoder_.reply(waiting_[i].reply); });
        for (Waiting& trace : waiting_) {
            if (!output_.is_full()) {
                finish(trace);
            }
        }
        waiting_.clear();
        waiting_bytes_ = 0;
    }

  private:
    static constexpr size_t batch_bytes = size_t{1} << 20U;

    struct Waiting {
        std::string where;
        std::vector<Token> prompt;
        std::string reply;
        std::vector<Token> reply_tokens;
        bool validation = false;
    };

    /// The first half of a SHA-256, as hex: 128 bits a trace are kept.
    static std::string identity(const Trace& trace) {
        std::string text;
        const auto add = [&text](const std::string& part) {
            text += std::to_string(part.size()) + ":" + part;
        };
        for (const Message& message : trace.messages) {
            add(message.role);
            add(message.content);
        }
        add(trace.think);
        add(trace.answer);
        return sha256(std::as_bytes(std::span(text))).substr(0, 32);
    }

    bool has_tags(const Trace& trace) const {
        return std::ranges::any_of(std::array{&trace.think, &trace.answer}, [&](const std::string* text) {
            return text->find(tags_.start) != std::string::npos || text->find(tags_.end) != std::string::npos;
        });
    }

    std::optional<std::string> role_with_control_token(const Trace& trace) const {
        const auto found = std::ranges::find_if(trace.messages, [&](const Message& message) {
            return encoder_.holds_control_token(message.content);
        });
        return found == trace.messages.end() ? std::nullopt : std::optional(found->role);
    }

    void encode_prompt(const Trace& trace, const std::string& where) {
        EncodedPrompt prompt;
        try {
            prompt = encoder_.prompt(trace.messages);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::invalid_argument) {
                throw;
            }
            output_.reject("template_refuses", 1, where + ": " + error.what());
            return;
        }
        std::string reply = reply_text(prompt.text, tags_, trace.think, trace.answer);
        waiting_bytes_ += reply.size();
        waiting_.push_back({.where = where,
                            .prompt = std::move(prompt.tokens),
                            .reply = std::move(reply),
                            .reply_tokens = {},
                            .validation = is_validation(split_key(trace.messages), options_.val_share)});
    }

    void finish(Waiting& trace) {
        const auto prompt_tokens = static_cast<int32_t>(trace.prompt.size());
        std::vector<Token> tokens = std::move(trace.prompt);
        tokens.insert(tokens.end(), trace.reply_tokens.begin(), trace.reply_tokens.end());
        tokens.push_back(encoder_.end());
        if (tokens.size() < options_.min_tokens) {
            output_.reject("too_short", 1, fmt::format("{}: {} tokens", trace.where, tokens.size()));
        } else if (options_.max_tokens > 0 && tokens.size() > options_.max_tokens) {
            output_.reject("too_long", 1, fmt::format("{}: {} tokens", trace.where, tokens.size()));
        } else {
            output_.add(tokens, prompt_tokens, {}, trace.validation);
        }
    }

    const PrepareOptions& options_;
    const Encoder& encoder_;
    Output& output_;
    ThinkTags tags_;
    std::unordered_set<std::string> seen_;
    std::vector<Waiting> waiting_;
    size_t waiting_bytes_ = 0; ///< of their replies
};

Json describe(const std::vector<std::filesystem::path>& sources) {
    Json list = Json::array();
    for (const auto& source : sources) {
        list.push_back({{"file", source.string()},
                        {"bytes", std::filesystem::file_size(source)},
                        {"sha256", sha256_file(source)}});
    }
    return list;
}

/// Reads one record and hands its traces on; false at the end of the file.
bool add_next(RecordSource& source, Gate& gate, Output& output) {
    const auto record = source.next();
    if (!record) {
        return false;
    }
    const std::string where = source.where();
    if (record->is_discarded()) {
        output.reject("not_json", 1, where);
        return true;
    }
    const ShapeResult shape = traces_of(*record);
    for (const Rejection& rejection : shape.rejected) {
        output.reject(rejection.reason, 1, where + ": " + rejection.detail);
    }
    for (const Trace& trace : shape.traces) {
        gate.add(trace, where);
    }
    return true;
}

/// No trace left: says why, by the first example of each reason.
[[noreturn]] void fail_empty(const Output& output) {
    std::string reasons;
    for (const auto& [reason, entry] : output.rejected()) {
        reasons += fmt::format("\n  {} x {}, first {}", entry.count, reason, entry.example);
    }
    fail(ErrorCode::bad_file, "no trace is left, so nothing was written{}{}", reasons.empty() ? "" : ":",
         reasons.empty() ? ": the sources hold no records" : reasons);
}

} // namespace

PrepareReport prepare(const std::vector<std::filesystem::path>& sources, const PrepareOptions& options,
                      const Encoder& encoder) {
    check_options(options);
    std::vector<std::unique_ptr<RecordSource>> readers;
    uint64_t total = 0;
    for (const auto& source : sources) { // a missing one is named before any work
        readers.push_back(open_records(source));
        total += std::filesystem::file_size(source);
    }
    Output output(options, encoder);
    Gate gate(options, encoder, output);
    uint64_t before = 0;
    for (size_t i = 0; i < readers.size() && !output.is_full(); ++i) {
        while (!output.is_full() && add_next(*readers[i], gate, output)) {
            if (gate.has_batch()) {
                gate.flush();
            }
            output.report_progress(before + readers[i]->position(), total);
        }
        before += std::filesystem::file_size(sources[i]);
        readers[i].reset();
    }
    gate.flush();
    if (output.traces() == 0) {
        fail_empty(output);
    }
    return output.finish({{"sources", describe(sources)},
                          {"min_tokens", options.min_tokens},
                          {"max_tokens", options.max_tokens},
                          {"limit", options.limit}});
}

PrepareReport prepare(const SyntheticOptions& synthetic, const PrepareOptions& options,
                      const Encoder& encoder) {
    check_options(options);
    if (synthetic.samples == 0) {
        fail(ErrorCode::invalid_argument, "--samples 0: nothing to make");
    }
    const Synthesizer synthesizer(synthetic, encoder, options.val_share);
    Output output(options, encoder);
    const size_t batch = 4 * std::max<size_t>(1, options.threads);
    std::vector<SyntheticTrace> traces(batch);
    for (size_t begin = 0; begin < synthetic.samples; begin += batch) {
        const size_t count = std::min(batch, synthetic.samples - begin);
        parallel_for(count, options.threads, [&](size_t i) { traces[i] = synthesizer.make(begin + i); });
        for (size_t i = 0; i < count; ++i) {
            output.add(traces[i].tokens, traces[i].prompt, traces[i].answers, traces[i].validation);
        }
        output.report_progress(begin + count, synthetic.samples);
    }
    return output.finish(
        {{"synthetic", to_string(synthetic.task)},
         {"samples", synthetic.samples},
         {"repeats", synthetic.repeats},
         {"facts", synthetic.facts},
         {"distance", {synthetic.distance_low, synthetic.distance_high}},
         {"seed", synthetic.seed},
         {"filler", synthetic.filler.empty() ? Json("made-up sentences") : describe({synthetic.filler})[0]}});
}

} // namespace spool
