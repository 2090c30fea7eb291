// Sixteen queries side by side: the unit of all the pooler's arithmetic. A "panel" is an array of Lanes, one
// per feature (or per past token), and lane i of every element belongs to query i of the panel; so softmax
// and layer norm are plain loops without a horizontal step. Internal to src/pooler, which alone is compiled
// for the machine's own instruction set.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace spool::pooler {

constexpr size_t lane_count = 16;

// The widest vector of the target, and how many rows of Lanes fit into its registers as accumulators.
#if defined(__AVX512F__)
constexpr size_t vector_floats = 16;
constexpr size_t tile_rows = 12;
#elif defined(__AVX__)
constexpr size_t vector_floats = 8;
constexpr size_t tile_rows = 6;
#elif defined(__aarch64__)
constexpr size_t vector_floats = 4;
constexpr size_t tile_rows = 6;
#else
constexpr size_t vector_floats = 4;
constexpr size_t tile_rows = 3;
#endif
constexpr size_t part_count = lane_count / vector_floats;

using Vector [[gnu::vector_size(vector_floats * sizeof(float))]] = float;
using IntVector [[gnu::vector_size(vector_floats * sizeof(float))]] = int32_t;

struct alignas(64) Lanes {
    std::array<Vector, part_count> part;

    static Lanes all(float value) {
        Lanes result{};
        for (Vector& vector : result.part) {
            vector = Vector{} + value;
        }
        return result;
    }
    float operator[](size_t lane) const { return part[lane / vector_floats][lane % vector_floats]; }
    void set(size_t lane, float value) { part[lane / vector_floats][lane % vector_floats] = value; }
};

/// operation(a, b) on every part.
template <typename Operation, typename... Others>
Lanes apply(Operation operation, const Lanes& a, const Others&... others) {
    Lanes result{};
    for (size_t i = 0; i < part_count; ++i) {
        result.part[i] = operation(a.part[i], others.part[i]...);
    }
    return result;
}

inline Lanes operator+(const Lanes& a, const Lanes& b) {
    return apply([](Vector x, Vector y) { return x + y; }, a, b);
}
inline Lanes operator-(const Lanes& a, const Lanes& b) {
    return apply([](Vector x, Vector y) { return x - y; }, a, b);
}
inline Lanes operator*(const Lanes& a, const Lanes& b) {
    return apply([](Vector x, Vector y) { return x * y; }, a, b);
}
inline Lanes operator/(const Lanes& a, const Lanes& b) {
    return apply([](Vector x, Vector y) { return x / y; }, a, b);
}
inline Lanes operator+(const Lanes& a, float b) { return a + Lanes::all(b); }
inline Lanes operator*(const Lanes& a, float b) { return a * Lanes::all(b); }
inline Lanes max(const Lanes& a, const Lanes& b) {
    return apply([](Vector x, Vector y) { return x > y ? x : y; }, a, b);
}
inline Lanes sqrt(const Lanes& a) {
    Lanes result{};
    for (size_t i = 0; i < lane_count; ++i) {
        result.set(i, std::sqrt(a[i]));
    }
    return result;
}
inline bool equal(const Lanes& a, const Lanes& b) {
    for (size_t i = 0; i < lane_count; ++i) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}
inline float sum(const Lanes& a) {
    float total = 0.0F;
    for (size_t i = 0; i < lane_count; ++i) {
        total += a[i];
    }
    return total;
}

/// e^x for x <= 0, relative error below 2e-7; 0 for x < -87, where float32 leaves its normal range.
/// e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2, and e^r by its Taylor polynomial of degree 7.
inline Vector exp_nonpositive(Vector x) {
    constexpr float ln2_high = 355.0F / 512.0F; // 9 bits: n * ln2_high is exact
    constexpr auto ln2_low = static_cast<float>(std::numbers::ln2 - 355.0 / 512.0);
    constexpr float rounder = 0x1.8p23F; // adding it rounds to an integer, kept in the low mantissa bits
    const Vector clamped = x < -87.0F ? Vector{} - 87.0F : x;
    const Vector shifted = clamped * std::numbers::log2e_v<float> + rounder;
    const Vector n = shifted - rounder;
    const Vector r = (clamped - n * ln2_high) - n * ln2_low;
    Vector y = r * (1.0F / 5040.0F) + (1.0F / 720.0F);
    y = y * r + (1.0F / 120.0F);
    y = y * r + (1.0F / 24.0F);
    y = y * r + (1.0F / 6.0F);
    y = y * r + 0.5F;
    y = y * (r * r) + r + 1.0F;
    const IntVector exponent = (reinterpret_cast<IntVector>(shifted) + 127) << 23;
    return x < -87.0F ? Vector{} : y * reinterpret_cast<Vector>(exponent);
}
inline Lanes exp_nonpositive(const Lanes& a) {
    return apply([](Vector x) { return exp_nonpositive(x); }, a);
}

} // namespace spool::pooler
