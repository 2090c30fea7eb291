#include "memory/distant_buffer.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace spool {

void move_to_distant(Transcript& transcript, size_t window) {
    const size_t start =
        transcript.pinned + transcript.raw_length() - std::min(transcript.raw_length(), window);
    for (size_t i = transcript.window_start; i < start; ++i) {
        transcript.distant.push_back(static_cast<uint32_t>(i));
    }
    transcript.window_start = std::max(transcript.window_start, start);
}

std::vector<uint32_t> top_by_mass(std::span<const float> mass, size_t keep) {
    std::vector<uint32_t> order(mass.size());
    std::iota(order.begin(), order.end(), 0U);
    if (keep >= mass.size()) {
        return order;
    }
    const auto heavier = [&](uint32_t a, uint32_t b) {
        return mass[a] != mass[b] ? mass[a] > mass[b] : a > b;
    };
    std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(keep), heavier);
    order.resize(keep);
    std::ranges::sort(order);
    return order;
}

size_t evict(Transcript& transcript, std::span<const float> mass, size_t keep) {
    auto& distant = transcript.distant;
    if (mass.size() != distant.size()) {
        fail(ErrorCode::internal, "{} masses for {} distant tokens", mass.size(), distant.size());
    }
    const auto kept = top_by_mass(mass, keep);
    const size_t dropped = distant.size() - kept.size();
    for (size_t j = 0; j < kept.size(); ++j) {
        distant[j] = distant[kept[j]];
    }
    distant.resize(kept.size());
    transcript.evicted += dropped;
    return dropped;
}

} // namespace spool
