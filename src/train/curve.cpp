#include "train/curve.h"

#include <fstream>
#include <utility>

#include "core/file.h"
#include "train/curve_page.h"

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
    const Json data = {{"settings", settings}, {"entries", entries_}};
    std::string text = data.dump();
    // "</script>" inside a string would end the element.
    for (size_t at = text.find("</"); at != std::string::npos; at = text.find("</", at + 3)) {
        text.insert(at + 1, "\\");
    }
    write_text(folder_ / "curve.html", std::string(curve_page_head) + text + curve_page_tail);
}

} // namespace spool::train
