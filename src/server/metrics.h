// Counts for /metrics, in Prometheus' text format. llama-server's names where it has the same thing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/engine.h"

namespace spool {

/// Thread-safe.
class Metrics {
  public:
    void add(const TurnOutcome& outcome);
    void add_embeddings(size_t texts, size_t tokens);
    void add_error(int status);

    std::string text(Engine& engine) const;

  private:
    std::atomic<uint64_t> prompt_tokens_ = 0; ///< read; those known already do not count
    std::atomic<uint64_t> known_tokens_ = 0;
    std::atomic<uint64_t> predicted_tokens_ = 0;
    std::atomic<uint64_t> milliseconds_ = 0;
    std::atomic<uint64_t> replies_ = 0;
    std::atomic<uint64_t> retries_ = 0;
    std::atomic<uint64_t> embedded_texts_ = 0;
    std::atomic<uint64_t> embedded_tokens_ = 0;
    std::atomic<uint64_t> client_errors_ = 0;
    std::atomic<uint64_t> server_errors_ = 0;
};

} // namespace spool
