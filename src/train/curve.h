// A run's log as JSON Lines, and as a page that draws it.
#pragma once

#include <filesystem>
#include <vector>

#include "core/json.h"

namespace spool::train {

class Curve {
  public:
    /// Reads folder/log.jsonl if there is one; a last line cut off by a kill is dropped.
    explicit Curve(std::filesystem::path folder);

    /// Appends one object, which has "step".
    void add(const Json& entry);
    /// Drops what a resumed run will do again.
    void forget_after(uint64_t step);
    /// Writes folder/curve.html: loss by step, evaluations by step and by minute.
    void draw(const Json& settings) const;

  private:
    std::filesystem::path folder_;
    std::vector<Json> entries_;
};

} // namespace spool::train
