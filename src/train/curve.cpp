#include "train/curve.h"

#include <cmath>
#include <fstream>
#include <map>
#include <utility>

#include "core/file.h"
#include "core/report.h"

namespace spool::train {

Curve::Curve(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::ifstream file(folder_ / "log.jsonl");
    for (std::string line; std::getline(file, line);) {
        Json entry = Json::parse(line, nullptr, false);
        if (!entry.is_discarded()) {
            entries_.push_back(std::move(entry));
        }
    }
}

void Curve::add(const Json& entry) {
    entries_.push_back(entry);
    std::ofstream(folder_ / "log.jsonl", std::ios::app) << entry.dump() << '\n';
}

void Curve::forget_after(uint64_t step) {
    std::erase_if(entries_, [&](const Json& entry) { return entry.at("step").get<uint64_t>() > step; });
    std::string text;
    for (const Json& entry : entries_) {
        text += entry.dump() + "\n";
    }
    write_text(folder_ / "log.jsonl", text);
}

void Curve::draw(const Json& settings) const {
    Series each{.name = "each step", .points = {}, .thin = true};
    Series smoothed{.name = "smoothed", .points = {}};
    Series recovered{.name = "recovered", .points = {}};
    std::map<std::string, Series> deep;
    std::map<std::string, Series> digits;
    for (const Json& entry : entries_) {
        const double step = entry.at("step").get<double>();
        if (entry.contains("loss")) {
            const double loss = entry["loss"].get<double>();
            const double before = smoothed.points.empty() ? loss : smoothed.points.back().second;
            each.points.emplace_back(step, loss);
            smoothed.points.emplace_back(step, 0.95 * before + 0.05 * loss);
        }
        if (entry.contains("evaluation")) {
            const Json& evaluation = entry["evaluation"];
            const double minutes = entry.at("seconds").get<double>() / 60;
            const auto add = [&](std::map<std::string, Series>& all, const std::string& arm,
                                 const Json& value) {
                all[arm].name = arm;
                all[arm].points.emplace_back(minutes, value.is_number() ? value.get<double>() : NAN);
            };
            for (const auto& [arm, value] : evaluation.at("deep").items()) {
                add(deep, arm, value.at("mean"));
            }
            if (evaluation.contains("answers")) {
                for (const auto& [arm, value] : evaluation["answers"].items()) {
                    add(digits, arm, value.at("digits").at("mean"));
                }
            }
            if (evaluation.contains("recovered") && evaluation["recovered"].at("value").is_number()) {
                recovered.points.emplace_back(minutes, evaluation["recovered"]["value"].get<double>());
            }
        }
    }
    const auto values = [](const std::map<std::string, Series>& all) {
        std::vector<Series> list;
        list.reserve(all.size());
        for (const auto& [arm, series] : all) {
            list.push_back(series);
        }
        return list;
    };
    Report report("Training run");
    report.lines("Loss, nats a token", "steps", {each, smoothed});
    report.lines("Validation, nats a token beyond the window", "minutes", values(deep));
    report.lines("Share of the lost context recovered", "minutes", {recovered});
    report.lines("Answers: tokens right", "minutes", values(digits));
    report.table("Settings", settings);
    write_text(folder_ / "curve.html", report.html());
}

} // namespace spool::train
