// `spool eval ce`: cross-entropy with all, part and none of the past.
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "cli/command.h"
#include "cli/eval.h"
#include "cli/options.h"
#include "core/error.h"
#include "core/file.h"
#include "core/progress.h"
#include "core/report.h"
#include "eval/cross_entropy.h"

namespace spool::cli {

namespace {

struct CeArguments {
    ModelArguments model;
    std::string records;
    std::optional<std::string> refresh;
    std::string per_record;
    std::string report;
    std::vector<std::string> arms;
    size_t limit = 0;
};

/// What each arm is, for the table.
const std::vector<std::pair<std::string, std::string>>& arm_texts() {
    static const std::vector<std::pair<std::string, std::string>> texts = {
        {"full", "everything before the target"},
        {"soft_prompt", "prompt + soft prompt + recent"},
        {"window_equal", "a window larger by the soft prompt's length"},
        {"window", "prompt + recent"},
        {"stream", "streamed, old tokens dropped"},
        {"noise", "random vectors of the same norm"},
        {"other", "another record's soft prompt"},
        {"full_base", "full, without the adapter"},
        {"window_base", "window, without the adapter"}};
    return texts;
}

void print_table(const CrossEntropyResult& result) {
    fmt::print("{} records, nats per target token [95% paired bootstrap]\n", result.records.size());
    for (const auto& [arm, text] : arm_texts()) {
        const auto found = result.arms.find(arm);
        if (found != result.arms.end()) {
            const Interval& i = found->second;
            fmt::print("  {:<13}{:8.4f}  [{:.4f}, {:.4f}]  {}\n", arm, i.value, i.lo, i.hi, text);
        }
    }
    if (!std::isnan(result.recovered.value)) {
        fmt::print("  recovered    {:8.1f}% [{:.1f}%, {:.1f}%]  of what dropping the distant text loses\n",
                   100 * result.recovered.value, 100 * result.recovered.lo, 100 * result.recovered.hi);
    }
}

Report report_of(const CrossEntropyResult& result, const std::vector<Record>& records, const Json& settings) {
    Report report("spool eval ce");
    if (!std::isnan(result.recovered.value)) {
        report.bars("Recovered, of what dropping the distant text loses [95% paired bootstrap]",
                    {{"soft prompt", result.recovered}});
    }
    std::vector<std::vector<std::string>> rows;
    std::vector<Series> by_distance;
    for (const auto& [arm, text] : arm_texts()) {
        const auto found = result.arms.find(arm);
        if (found == result.arms.end()) {
            continue;
        }
        const Interval& i = found->second;
        rows.push_back(
            {arm, fmt::format("{:.4f}", i.value), fmt::format("{:.4f} to {:.4f}", i.lo, i.hi), text});
        std::map<size_t, std::pair<double, double>> sums; // of the records with so many distant tokens
        for (size_t r = 0; r < result.records.size(); ++r) {
            auto& [sum, count] = sums[records[r].distant.size()];
            sum += result.records[r].at(arm);
            count += 1;
        }
        Series line{.name = arm, .points = {}};
        for (const auto& [distance, sum] : sums) {
            line.points.emplace_back(distance, sum.first / sum.second);
        }
        by_distance.push_back(std::move(line));
    }
    report.table("Nats per target token", {"arm", "mean", "95% interval", "the target's past is"}, rows);
    report.lines("Nats per target token, by the length of the distant text", "distant tokens", by_distance);
    report.table("Settings", settings);
    return report;
}

int run_ce(const CeArguments& arguments, const Global& global) {
    catch_interrupts();
    const Loaded loaded = load(arguments.model);
    const Bundle* bundle = loaded.bundle_or_null();
    std::vector<Record> records = read_records(arguments.records, loaded.model->facts().vocab_size);
    if (arguments.limit > 0 && records.size() > arguments.limit) {
        records.resize(arguments.limit);
    }
    const Layout refresh = arguments.refresh   ? layout_from_string(*arguments.refresh)
                           : bundle != nullptr ? bundle->trained.layout
                                               : Layout::carry;
    std::optional<AtomicFile> per_record;
    if (!arguments.per_record.empty()) {
        per_record.emplace(arguments.per_record);
    }
    ReportFile page(arguments.report);
    Progress progress("eval ce", records.size());
    CrossEntropyOptions options;
    options.pool = pool_options(arguments.model, {});
    options.refresh = refresh;
    options.arms = arguments.arms;
    options.on_record = [&](size_t index, const ArmValues& arms) {
        if (per_record) {
            Json line = {{"id", records[index].id}};
            for (const auto& [arm, value] : arms) {
                line[arm] = value;
            }
            per_record->write(line.dump() + "\n");
        }
        progress.update(index + 1);
        return !interrupted();
    };
    const auto result = evaluate_cross_entropy(*loaded.model, bundle, options, records);
    progress.finish();
    if (per_record) {
        per_record->commit();
    }
    page.write(report_of(result, records,
                         {{"model", loaded.model->facts().description},
                          {"bundle", arguments.model.bundle},
                          {"records", arguments.records},
                          {"refresh", to_string(refresh)}}));
    if (global.json) {
        Json json = to_json(result);
        json["refresh"] = to_string(refresh);
        print_json(json);
    } else {
        print_table(result);
    }
    return interrupted() ? exit_interrupted : exit_success;
}

} // namespace

void add_eval_ce(CLI::App& eval, Global& global) {
    auto arguments = std::make_shared<CeArguments>();
    CLI::App* ce =
        eval.add_subcommand("ce", "cross-entropy of records with all, part and none of their past");
    ce->footer("Example: spool eval ce -m model.gguf --bundle DIR --records golden.jsonl.gz --refresh carry");
    arguments->model.add_to(*ce);
    ce->add_option("--records", arguments->records,
                   "JSON Lines (or .gz) with prompt, distant, recent, target token ids")
        ->required();
    ce->add_option("--refresh", arguments->refresh, "rebuild | carry (default: as the bundle was trained)");
    ce->add_option("--per-record", arguments->per_record,
                   "write every record's values to this file (JSON Lines)");
    ce->add_option("--report", arguments->report, "write a page of plots (HTML)");
    ce->add_option("--arms", arguments->arms,
                   "only these: full, window, soft_prompt, noise, other, stream, window_equal, "
                   "full_base, window_base");
    ce->add_option("--limit", arguments->limit, "only the first N records");
    ce->callback([arguments, &global] { global.exit_code = run_ce(*arguments, global); });
}

} // namespace spool::cli
