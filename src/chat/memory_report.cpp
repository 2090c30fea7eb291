#include "chat/memory_report.h"

#include <algorithm>
#include <span>

#include <fmt/core.h>

namespace spool {

namespace {

/// The first words of `tokens`, on one line.
std::string beginning(std::span<const Token> tokens, const Tokenizer& tokenizer) {
    constexpr size_t most_tokens = 10;
    std::string text = tokenizer.decode(tokens.first(std::min(tokens.size(), most_tokens)));
    std::ranges::replace(text, '\n', ' ');
    const size_t first = text.find_first_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first);
}

} // namespace

MemoryReport report_memory(const Transcript& transcript, const MemorySettings& settings,
                           const Tokenizer& tokenizer) {
    MemoryReport report;
    report.tokens = transcript.tokens.size();
    report.pinned = std::min(transcript.pinned, transcript.tokens.size());
    report.window = transcript.window().size();
    report.window_begins = beginning(transcript.window(), tokenizer);
    const size_t behind = transcript.window_start - report.pinned;
    if (settings.strategy == StrategyKind::soft_prompt) {
        report.vectors = transcript.soft_prompt;
        report.compressed = transcript.distant.size();
    } else if (settings.strategy == StrategyKind::slots) {
        report.vectors = transcript.slot_cells();
        report.compressed = behind - std::min(behind, transcript.evicted);
    }
    report.evicted = behind - std::min(behind, report.compressed);
    if (report.compressed > 0) {
        const size_t first =
            transcript.distant.empty() ? report.pinned + report.evicted : transcript.distant.front();
        report.compressed_begins = beginning(
            std::span(transcript.tokens).subspan(first, transcript.window_start - first), tokenizer);
    }
    return report;
}

std::string to_text(const MemoryReport& report) {
    std::string text = fmt::format("{} tokens so far\n  pinned      {:>7}\n", report.tokens, report.pinned);
    if (report.evicted > 0) {
        text += fmt::format("  evicted     {:>7}  gone\n", report.evicted);
    }
    if (report.compressed > 0) {
        text += fmt::format(
            "  compressed  {:>7}  into {} vectors: the gist is there, names and numbers may not be\n"
            "                       from: {}...\n",
            report.compressed, report.vectors, report.compressed_begins);
    }
    return text + fmt::format("  window      {:>7}  word for word\n                       from: {}...\n",
                              report.window, report.window_begins);
}

Json to_json(const MemoryReport& report) {
    return {{"tokens", report.tokens},   {"pinned", report.pinned},   {"compressed", report.compressed},
            {"vectors", report.vectors}, {"evicted", report.evicted}, {"window", report.window}};
}

} // namespace spool
