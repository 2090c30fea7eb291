#include "corpus/synthetic.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/random.h"
#include "corpus/script.h"
#include "corpus/split.h"

namespace spool {

namespace {

constexpr std::array<std::pair<SyntheticTask, const char*>, 3> tasks = {
    {{SyntheticTask::recall, "recall"}, {SyntheticTask::ledger, "ledger"}, {SyntheticTask::rally, "rally"}}};

/// Finds tokens by the bytes they stand for.
class TokenBytes {
  public:
    TokenBytes(const Encoder& encoder, const std::vector<Token>& tokens, size_t text_bytes) {
        ends_.reserve(tokens.size());
        size_t end = 0;
        for (const Token token : tokens) {
            end += encoder.piece(token).size();
            ends_.push_back(end);
        }
        shift_ = end - std::min(end, text_bytes); // a space some tokenizers put before all
        if (end < text_bytes || shift_ > 1) {
            fail(ErrorCode::unsupported,
                 "this model's tokenizer does not keep the text ({} bytes became {}), so that distances in "
                 "tokens "
                 "cannot be measured",
                 text_bytes, end);
        }
    }

    /// The token that holds the byte.
    int64_t at(size_t byte) const { return std::ranges::upper_bound(ends_, byte + shift_) - ends_.begin(); }
    /// Tokens before the byte; nullopt if a token spans it.
    std::optional<int64_t> boundary(size_t byte) const {
        const auto found = std::ranges::lower_bound(ends_, byte + shift_);
        return found != ends_.end() && *found == byte + shift_ ? std::optional(found - ends_.begin() + 1)
                                                               : std::nullopt;
    }

  private:
    std::vector<size_t> ends_; ///< bytes up to and with each token
    size_t shift_ = 0;
};

LineSize size_of(const Encoder& encoder, const ScriptLine& line) {
    const std::string text = line.text + "\n";
    const std::vector<Token> tokens = line_tokens(encoder, text);
    const TokenBytes bytes(encoder, tokens, text.size());
    return {static_cast<int64_t>(tokens.size()), line.answers() ? bytes.at(line.answer_begin) : 0};
}

/// The thinking: lines at their places, filler between. `begins`: each line's first byte.
std::string write_body(const Encoder& encoder, const Script& script, const std::vector<LineSize>& sizes,
                       const std::vector<int64_t>& starts, FillerReader& filler,
                       std::vector<size_t>& begins) {
    std::vector<size_t> order(script.lines.size());
    for (size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    std::ranges::sort(order, {}, [&](size_t i) { return starts[i]; });
    std::string body;
    begins.assign(script.lines.size(), 0);
    int64_t end = 0;
    for (const size_t i : order) {
        body += filler.take(encoder, static_cast<size_t>(starts[i] - end));
        begins[i] = body.size();
        body += script.lines[i].text + "\n";
        end = starts[i] + sizes[i].tokens;
    }
    return body;
}

/// The answers in the ids of the whole reply; nullopt if a distance is not what was asked for.
std::optional<std::vector<Answer>> measure(const Encoder& encoder, const Script& script,
                                           const std::vector<size_t>& begins, size_t body_begin,
                                           const std::string& reply, const std::vector<Token>& tokens) {
    const TokenBytes bytes(encoder, tokens, reply.size());
    std::vector<Answer> answers;
    for (size_t i = 1; i < script.lines.size(); ++i) {
        const ScriptLine& line = script.lines[i];
        if (!line.answers()) {
            continue;
        }
        const auto stated = bytes.boundary(body_begin + begins[i - 1] + script.lines[i - 1].text.size() + 1);
        const size_t first_byte = body_begin + begins[i] + line.answer_begin;
        const int64_t first = bytes.at(first_byte);
        const int64_t last = bytes.at(first_byte + line.answer_bytes - 1);
        if (!stated || first - *stated != line.distance) {
            return std::nullopt;
        }
        answers.push_back(
            {static_cast<int32_t>(first), static_cast<int32_t>(last - first + 1), line.distance});
    }
    std::ranges::sort(answers, {}, &Answer::offset);
    return answers;
}

} // namespace

std::string to_string(SyntheticTask task) {
    for (const auto& [value, name] : tasks) {
        if (value == task) {
            return name;
        }
    }
    return "unknown";
}

SyntheticTask synthetic_task_from_string(const std::string& name) {
    for (const auto& [value, text] : tasks) {
        if (name == text) {
            return value;
        }
    }
    fail(ErrorCode::invalid_argument, "unknown synthetic task \"{}\"; expected recall, ledger or rally",
         name);
}

Synthesizer::Synthesizer(const SyntheticOptions& options, const Encoder& encoder, double val_share)
    : options_(options), encoder_(encoder), val_share_(val_share),
      filler_(options.filler.empty() ? Filler() : Filler(options.filler, encoder.tags(), val_share)) {
    if (options.distance_low < 1 || options.distance_high < options.distance_low ||
        options.distance_high > (1 << 24)) {
        fail(ErrorCode::invalid_argument, "--distance {}-{}: expected 1 to {}, the smaller number first",
             options.distance_low, options.distance_high, 1 << 24);
    }
    Random random(options.seed);
    prompt_ = encoder_.prompt({{"user", write_script(options_, random).prompt}});
}

SyntheticTrace Synthesizer::make(size_t index) const {
    constexpr int attempts = 20;
    Random random(options_.seed * 0x9E3779B97F4A7C15U + index);
    SyntheticTrace result;
    result.validation =
        is_validation(fmt::format("{} {} {}", to_string(options_.task), options_.seed, index), val_share_);
    const Script script = write_script(options_, random);
    std::vector<LineSize> sizes;
    sizes.reserve(script.lines.size());
    for (const ScriptLine& line : script.lines) {
        sizes.push_back(size_of(encoder_, line));
    }
    const int64_t spread = std::max(32, options_.distance_low / options_.facts);
    const auto prompt_tokens = static_cast<int32_t>(prompt_.tokens.size());
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const auto starts = place_lines(script.lines, sizes, spread, random);
        FillerReader filler(filler_.text(result.validation), random);
        std::vector<size_t> begins;
        std::string body = write_body(encoder_, script, sizes, starts, filler, begins);
        body.pop_back(); // the newline that the reply puts before the closing tag
        const std::string reply = reply_text(prompt_.text, encoder_.tags(), body, script.closing);
        const std::vector<Token> tokens = encoder_.reply(reply);
        auto answers = measure(encoder_, script, begins, reply.find(body), reply, tokens);
        if (!answers) {
            continue;
        }
        result.tokens = prompt_.tokens;
        result.tokens.insert(result.tokens.end(), tokens.begin(), tokens.end());
        result.tokens.push_back(encoder_.end());
        result.prompt = prompt_tokens;
        result.answers = std::move(*answers);
        for (Answer& answer : result.answers) {
            answer.offset += prompt_tokens;
        }
        return result;
    }
    fail(
        ErrorCode::unsupported,
        "sample {}: this model's tokenizer merges the lines of a trace in a way that changes their distances",
        index);
}

} // namespace spool
