#include "core/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"

namespace spool {

double mean_over(const std::vector<double>& values, std::span<const size_t> indices) {
    double sum = 0;
    for (const size_t i : indices) {
        sum += values[i];
    }
    return sum / static_cast<double>(indices.size());
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

Json to_json(const Interval& interval, const char* name) {
    return {{name, interval.value}, {"lo", interval.lo}, {"hi", interval.hi}};
}

Interval bootstrap(size_t count, const std::function<double(std::span<const size_t>)>& statistic,
                   size_t draws, uint64_t seed) {
    std::vector<size_t> indices(count);
    std::iota(indices.begin(), indices.end(), size_t{0});
    Interval interval;
    interval.value = statistic(indices);

    Random random(seed);
    std::vector<double> values;
    for (size_t draw = 0; draw < draws; ++draw) {
        for (auto& index : indices) {
            index = random.below(count);
        }
        const double value = statistic(indices);
        if (!std::isnan(value)) {
            values.push_back(value);
        }
    }
    if (values.empty()) {
        interval.lo = interval.hi = interval.value;
        return interval;
    }
    std::ranges::sort(values);
    const auto percentile = [&](double share) {
        return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
    };
    interval.lo = percentile(0.025);
    interval.hi = percentile(0.975);
    return interval;
}

} // namespace spool
