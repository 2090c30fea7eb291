// The sinusoidal position encoding of the kept tokens.
#pragma once

#include <cstddef>
#include <vector>

namespace spool::pooler {

/// PE[i] of design part 3, in PyTorch's float32 arithmetic: frequency f_k = exp(2k * (-ln(10000) / H)) and
/// angle i * f_k are each rounded to float32 before the sine is taken (at i = 4096 that shifts an angle by up
/// to 1.2e-4, enough to change a token's mass by 1e-4 of its value). Walking from one i to the next costs no
/// sine: sines and cosines of the unrounded angle turn by f_k in double precision, and the angle's rounding
/// error d, which is known exactly, enters as sin(a + d) = sin a + d cos a - d^2/2 sin a. Good to one float32
/// ulp up to i = 100,000.
class PositionEncoding {
  public:
    /// `hidden` may be odd: the last column is then a sine.
    explicit PositionEncoding(size_t hidden);

    /// Makes `position` the next one. Cheap if it already is.
    void seek(size_t position);
    /// Adds the encodings of the next `count` positions to `rows` [count, hidden] and moves on by `count`.
    void add_next(float* rows, size_t count);

  private:
    static constexpr size_t wave_pairs = 4;
    using Doubles [[gnu::vector_size(wave_pairs * sizeof(double))]] = double;

    /// wave_pairs consecutive column pairs.
    struct Waves {
        Doubles frequency{};
        Doubles sin_step{}, cos_step{}; ///< of one frequency
        Doubles sin{}, cos{};           ///< of position * frequency
    };

    size_t hidden_;
    size_t position_ = 0;
    std::vector<Waves> waves_;
};

} // namespace spool::pooler
