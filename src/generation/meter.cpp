#include "generation/meter.h"

#include <algorithm>
#include <sys/resource.h>
#include <unistd.h>

#include "core/error.h"
#include "core/progress.h"

namespace spool {

namespace {

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

} // namespace

Meter::Meter(SessionPool& pool, Session& session) : pool_(&pool), session_(&session) {
    totals_.kv_bytes = pool.memory().kv;
    totals_.kv_cells = pool.memory().cells;
    totals_.reserved_bytes = pool.memory().total();
    session.on_compaction = [this](const Compaction& compaction) { record(compaction); };
}

void Meter::write_to(const std::filesystem::path& path) {
    path_ = path;
    file_.open(path, std::ios::trunc);
    if (!file_) {
        fail(ErrorCode::io, "{}: cannot be written (--metrics)", path.string());
    }
}

void Meter::record(const Compaction& done) {
    ++totals_.compactions;
    totals_.rebuilds += done.rebuilt ? 1 : 0;
    totals_.max_kept = std::max(totals_.max_kept, done.kept);
    totals_.evicted += done.evicted;
    totals_.pool_seconds += done.pool_seconds;
    totals_.refresh_seconds += done.refresh_seconds;
    if (file_.is_open()) {
        const Json line = {{"event", "compaction"},
                           {"seconds", seconds_between(start_, Clock::now())},
                           {"length", done.length},
                           {"kept", done.kept},
                           {"evicted", done.evicted},
                           {"window", done.window},
                           {"pool_seconds", done.pool_seconds},
                           {"refresh_seconds", done.refresh_seconds},
                           {"rebuilt", done.rebuilt}};
        file_ << line.dump() << '\n' << std::flush;
    }
}

void Meter::prompt_done() {
    totals_.prompt_tokens = session_->transcript().tokens.size();
    generation_start_ = last_token_ = Clock::now();
    totals_.prompt_seconds = seconds_between(start_, generation_start_);
}

void Meter::token_generated() {
    ++totals_.tokens;
    last_token_ = Clock::now();
}

MeterSummary Meter::summary() const {
    MeterSummary result = totals_;
    const double seconds = seconds_between(generation_start_, last_token_);
    result.tokens_per_second = seconds > 0 ? static_cast<double>(result.tokens) / seconds : 0;
    if (const uint32_t vectors = pool_->vectors_per_compaction(); vectors > 0) {
        // Slots are as many for each chunk, however many chunks there are.
        const MemorySettings& s = pool_->settings();
        result.compression = s.strategy == StrategyKind::slots
                                 ? static_cast<double>(s.chunk) / vectors
                                 : static_cast<double>(result.max_kept) / vectors;
    }
    result.peak_rss_bytes = peak_rss_bytes();
    return result;
}

std::string Meter::line() const {
    const MeterSummary now = summary();
    const auto& transcript = session_->transcript();
    std::string text = fmt::format("{} tok  {:.1f} tok/s  pinned {}  window {}", now.tokens,
                                   now.tokens_per_second, transcript.pinned, transcript.window().size());
    if (const uint32_t vectors = pool_->vectors_per_compaction(); vectors > 0) {
        const size_t held = transcript.distant.size() + transcript.slot_groups() * pool_->settings().chunk;
        const size_t cells = transcript.soft_prompt + transcript.slot_cells();
        text +=
            fmt::format("  distant {} -> {} ({:.1f}x)", held, cells,
                        static_cast<double>(held) / static_cast<double>(std::max<size_t>(cells, vectors)));
    }
    return text + fmt::format("  evicted {}  cells {}/{}  KV {} fixed", transcript.evicted,
                              session_->cells_used(), now.kv_cells,
                              format_bytes(static_cast<double>(now.kv_bytes)));
}

void Meter::finish() {
    if (!file_.is_open()) {
        return;
    }
    Json line = to_json(summary());
    line["event"] = "summary";
    file_ << line.dump() << '\n';
    file_.close();
    if (!file_) {
        fail(ErrorCode::io, "{}: the metrics could not be written completely (is the disk full?)",
             path_.string());
    }
}

Json to_json(const MeterSummary& s) {
    return {{"tokens", s.tokens},
            {"tokens_per_second", s.tokens_per_second},
            {"prompt_tokens", s.prompt_tokens},
            {"prompt_seconds", s.prompt_seconds},
            {"kv_bytes", s.kv_bytes},
            {"kv_cells", s.kv_cells},
            {"max_kept", s.max_kept},
            {"compression", s.compression},
            {"compactions", s.compactions},
            {"rebuilds", s.rebuilds},
            {"evicted", s.evicted},
            {"pool_seconds", s.pool_seconds},
            {"refresh_seconds", s.refresh_seconds},
            {"reserved_bytes", s.reserved_bytes},
            {"peak_rss_bytes", s.peak_rss_bytes}};
}

size_t peak_rss_bytes() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
    return static_cast<size_t>(usage.ru_maxrss);
#else
    return static_cast<size_t>(usage.ru_maxrss) * 1024;
#endif
}

size_t current_rss_bytes() {
    std::ifstream statm("/proc/self/statm");
    size_t pages = 0;
    size_t resident = 0;
    statm >> pages >> resident;
    return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace spool
