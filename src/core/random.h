// Random numbers that are the same on every platform: the engine is the standard's, the distributions are
// spelled out here because the standard leaves theirs to the implementation.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace spool {

class Random {
  public:
    explicit Random(uint64_t seed) : engine_(seed) {}

    uint64_t bits() { return engine_(); }
    /// Uniform in [0, 1).
    double uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
    /// Uniform in [0, bound). `bound` must be positive; the bias of under 2^-32 is accepted.
    uint64_t below(uint64_t bound) { return static_cast<uint64_t>(uniform() * static_cast<double>(bound)); }
    /// Standard normal (Box-Muller).
    double normal() {
        const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
        return radius * std::cos(2.0 * std::numbers::pi * uniform());
    }

  private:
    std::mt19937_64 engine_;
};

} // namespace spool
