#include "eval/endless_chat.h"

#include <algorithm>
#include <string>
#include <utility>

#include "chat/conversation.h"
#include "core/error.h"
#include "corpus/sentences.h"
#include "eval/speed_peer.h"
#include "generation/meter.h"
#include "memory/schedule.h"

namespace spool {

namespace {

constexpr size_t fewest_turns = 8;

double median_of(const std::vector<EndlessTurn>& turns, size_t begin, size_t end,
                 double EndlessTurn::* value) {
    std::vector<double> values;
    values.reserve(end - begin);
    for (size_t i = begin; i < end; ++i) {
        values.push_back(turns[i].*value);
    }
    return median(std::move(values));
}

} // namespace

std::vector<EndlessTurn> run_endless_chat(const Model& model, const Bundle* bundle, const ChatTemplate& chat,
                                          const EndlessOptions& options) {
    if (options.turns < fewest_turns) {
        fail(ErrorCode::invalid_argument, "{} turns say nothing; ask for {} or more", options.turns,
             fewest_turns);
    }
    const Tokenizer tokenizer(model);
    const TurnFormat format(chat, tokenizer, {}, {});
    PoolOptions pool_options = options.pool;
    pool_options.memory.pin = format.pinned();
    SessionPool pool(model, bundle, pool_options);
    const auto session = pool.open();
    SamplerOptions sampling = options.sampler;
    sampling.ignore_end = true;
    Sampler sampler(tokenizer, sampling);
    const TurnRules rules{.max_seconds = 0, .max_tokens = options.reply, .repeat_limit = 0, .stop = {}};
    Conversation conversation({*session, tokenizer, format, sampler}, rules);
    LlamaPeer peer(model, pool.context().cells() - LlamaPeer::spare_cells, pool.context().threads(),
                   bundle != nullptr && bundle->lora ? bundle->lora->string() : "");

    std::vector<EndlessTurn> turns;
    size_t before = 0;
    for (size_t i = 0; i < options.turns; ++i) {
        const std::string text = made_up_text(options.text, i);
        const Stopwatch watch;
        const Turn turn = conversation.say(text);
        EndlessTurn made{.seconds = watch.seconds()};
        made.tokens = session->transcript().tokens.size();
        made.peer_seconds = peer.turn(made.tokens - before - turn.tokens, turn.tokens, format.pinned());
        made.cells = session->cells_used();
        made.rss_bytes = current_rss_bytes();
        before = made.tokens;
        turns.push_back(made);
        if (options.on_turn && !options.on_turn(i + 1)) {
            break;
        }
    }
    if (turns.size() < fewest_turns) {
        fail(ErrorCode::interrupted, "stopped after {} turns, too few to say anything", turns.size());
    }
    return turns;
}

Json summarise(const std::vector<EndlessTurn>& turns) {
    const size_t quarter = turns.size() / 4;
    const double early = median_of(turns, quarter, 2 * quarter, &EndlessTurn::seconds);
    const double late = median_of(turns, turns.size() - quarter, turns.size(), &EndlessTurn::seconds);
    const double peer = median_of(turns, turns.size() - quarter, turns.size(), &EndlessTurn::peer_seconds);
    double ours = 0;
    double theirs = 0;
    for (size_t i = quarter; i < turns.size(); ++i) {
        ours += turns[i].seconds;
        theirs += turns[i].peer_seconds;
    }
    return {{"turns", turns.size()},
            {"tokens", turns.back().tokens},
            {"seconds_second_quarter", early},
            {"seconds_last_quarter", late},
            {"flat", late / early},
            {"peer_seconds_last_quarter", peer},
            {"speed_beside_peer", theirs / ours},
            {"cells", turns.back().cells},
            {"rss_growth_bytes",
             static_cast<int64_t>(turns.back().rss_bytes) - static_cast<int64_t>(turns[quarter].rss_bytes)}};
}

Report endless_report(const std::vector<EndlessTurn>& turns, const Json& settings) {
    Series ours{.name = "spool", .points = {}};
    Series theirs{.name = "llama.cpp, context shift, as many cells", .points = {}};
    Series resident{.name = "resident MiB, both programs in one process", .points = {}};
    Series cells{.name = "cells in use", .points = {}};
    for (size_t i = 0; i < turns.size(); ++i) {
        const auto x = static_cast<double>(i + 1);
        ours.points.emplace_back(x, turns[i].seconds);
        theirs.points.emplace_back(x, turns[i].peer_seconds);
        resident.points.emplace_back(x, static_cast<double>(turns[i].rss_bytes) / (1 << 20U));
        cells.points.emplace_back(x, static_cast<double>(turns[i].cells));
    }
    Report report("A conversation without end");
    report.table("Summary", summarise(turns));
    report.lines("Seconds of a turn", "turn", {ours, theirs});
    report.lines("Memory", "turn", {resident});
    report.lines("Cells in use", "turn", {cells});
    report.table("Settings", settings);
    return report;
}

} // namespace spool
