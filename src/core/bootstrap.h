// Paired bootstrap intervals: records are drawn with replacement, all arms of a record together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/json.h"

namespace spool {

struct Interval {
    double value = 0; ///< of the sample itself
    double lo = 0;    ///< 2.5th percentile
    double hi = 0;    ///< 97.5th percentile
};

/// {name: value, "lo", "hi"}.
Json to_json(const Interval& interval, const char* name);

/// `statistic` gets the indices of the drawn records (for .value: 0..count-1) and may return NaN for a draw
/// without a value, which is left out. The same seed gives the same interval.
Interval bootstrap(size_t count, const std::function<double(std::span<const size_t>)>& statistic,
                   size_t draws = 10000, uint64_t seed = 1);

/// The middle one of `values`, the upper of two; there must be one.
double median(std::vector<double> values);

/// The mean of `values` over `indices`.
double mean_over(const std::vector<double>& values, std::span<const size_t> indices);

} // namespace spool
