#include "core/report.h"

#include <cmath>

#include "core/log.h"
#include "core/report_page.h"

namespace spool {

Report::Report(const std::string& title) : page_({{"title", title}, {"sections", Json::array()}}) {}

void Report::text(const std::string& paragraph) {
    page_["sections"].push_back({{"kind", "text"}, {"text", paragraph}});
}

void Report::lines(const std::string& title, const std::string& x_name, const std::vector<Series>& series) {
    Json drawn = Json::array();
    for (const Series& one : series) {
        Json points = Json::array();
        for (const auto& [x, y] : one.points) {
            if (std::isfinite(x) && std::isfinite(y)) {
                points.push_back({x, y});
            }
        }
        if (!points.empty()) {
            drawn.push_back({{"name", one.name}, {"points", points}, {"thin", one.thin}});
        }
    }
    if (!drawn.empty()) {
        page_["sections"].push_back({{"kind", "lines"}, {"title", title}, {"x", x_name}, {"series", drawn}});
    }
}

void Report::bars(const std::string& title, const std::vector<Bar>& bars) {
    Json drawn = Json::array();
    for (const Bar& bar : bars) {
        Json one = to_json(bar.share, "value");
        one["name"] = bar.name;
        drawn.push_back(std::move(one));
    }
    page_["sections"].push_back({{"kind", "bars"}, {"title", title}, {"bars", drawn}});
}

void Report::table(const std::string& title, const std::vector<std::string>& head,
                   const std::vector<std::vector<std::string>>& rows) {
    page_["sections"].push_back({{"kind", "table"}, {"title", title}, {"head", head}, {"rows", rows}});
}

void Report::table(const std::string& title, const Json& object) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, value] : object.items()) {
        rows.push_back({name, value.is_string() ? value.get<std::string>() : value.dump()});
    }
    table(title, {}, rows);
}

std::string Report::html() const {
    std::string data = json_text(page_);
    // "</script>" inside a string would end the element.
    for (size_t at = data.find("</"); at != std::string::npos; at = data.find("</", at + 3)) {
        data.replace(at, 2, "<\\/");
    }
    return std::string(report_page_head) + data + report_page_tail;
}

ReportFile::ReportFile(std::string path)
    : path_(std::move(path)), file_(path_.empty() ? nullptr : std::make_unique<AtomicFile>(path_)) {}

void ReportFile::write(const Report& report) {
    if (wanted()) {
        file_->write(report.html());
        file_->commit();
        log_info("wrote {}", path_);
    }
}

} // namespace spool
