// A page of plots and tables in one file that needs nothing else: what training runs and evaluations are
// looked at in.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/bootstrap.h"
#include "core/file.h"
#include "core/json.h"

namespace spool {

struct Series {
    std::string name;
    std::vector<std::pair<double, double>> points; ///< x, y; points that are not finite are left out
    bool thin = false;                             ///< a faint line behind the others
};

/// A share from 0 to 1 with its interval.
struct Bar {
    std::string name;
    Interval share;
};

class Report {
  public:
    explicit Report(const std::string& title);

    void text(const std::string& paragraph);
    void lines(const std::string& title, const std::string& x_name, const std::vector<Series>& series);
    void bars(const std::string& title, const std::vector<Bar>& bars);
    void table(const std::string& title, const std::vector<std::string>& head,
               const std::vector<std::vector<std::string>>& rows);
    /// Names and values, one row each.
    void table(const std::string& title, const Json& object);

    std::string html() const;

  private:
    Json page_;
};

/// The page that a command was asked for: begun before the work, so that a path which cannot be written is
/// refused at once, not when the results are there.
class ReportFile {
  public:
    /// `path` empty: no page is wanted, and write() does nothing.
    explicit ReportFile(std::string path);

    bool wanted() const { return file_ != nullptr; }
    /// Throws Error{io}.
    void write(const Report& report);

  private:
    std::string path_;
    std::unique_ptr<AtomicFile> file_;
};

} // namespace spool
