#include "server/metrics.h"

#include <fmt/format.h>

namespace spool {

void Metrics::add(const TurnOutcome& outcome) {
    prompt_tokens_ += outcome.prompt_tokens - outcome.known_tokens;
    known_tokens_ += outcome.known_tokens;
    predicted_tokens_ += outcome.turn.tokens;
    milliseconds_ += static_cast<uint64_t>(outcome.turn.seconds * 1000);
    retries_ += outcome.turn.attempts > 0 ? outcome.turn.attempts - 1 : 0;
    ++replies_;
}

void Metrics::add_embeddings(size_t texts, size_t tokens) {
    embedded_texts_ += texts;
    embedded_tokens_ += tokens;
}

void Metrics::add_error(int status) { ++(status < 500 ? client_errors_ : server_errors_); }

std::string Metrics::text(Engine& engine) const {
    std::string text;
    const auto add = [&](const char* name, const char* type, const char* help, double value) {
        text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
    };
    const auto number = [](const std::atomic<uint64_t>& count) { return static_cast<double>(count.load()); };
    add("llamacpp:prompt_tokens_total", "counter", "Prompt tokens read.", number(prompt_tokens_));
    add("llamacpp:tokens_predicted_total", "counter", "Tokens generated.", number(predicted_tokens_));
    add("llamacpp:requests_processing", "gauge", "Conversations that a reply is drawn for.",
        static_cast<double>(engine.store().busy()));
    add("spool:known_tokens_total", "counter", "Prompt tokens that were known and not read again.",
        number(known_tokens_));
    add("spool:replies_total", "counter", "Replies drawn.", number(replies_));
    add("spool:retries_total", "counter", "Replies drawn again because one could not stand.",
        number(retries_));
    add("spool:reply_seconds_total", "counter", "Time replies took, reading included.",
        number(milliseconds_) / 1000);
    add("spool:embedded_texts_total", "counter", "Texts embedded.", number(embedded_texts_));
    add("spool:embedded_tokens_total", "counter", "Tokens of texts embedded.", number(embedded_tokens_));
    add("spool:client_errors_total", "counter", "Requests refused.", number(client_errors_));
    add("spool:server_errors_total", "counter", "Requests that failed.", number(server_errors_));
    add("spool:sessions", "gauge", "Conversations at a time.",
        static_cast<double>(engine.options().pool.sessions));
    add("spool:kv_bytes", "gauge", "KV cache, fixed from the start.",
        static_cast<double>(engine.pool().memory().kv));
    return text;
}

} // namespace spool
