#include "pooler/position.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace spool::pooler {

PositionEncoding::PositionEncoding(size_t hidden) : hidden_(hidden) {
    const size_t pairs = (hidden + 1) / 2;
    waves_.resize((pairs + wave_pairs - 1) / wave_pairs);
    const auto slope = static_cast<float>(-std::log(10000.0) / static_cast<double>(hidden));
    for (size_t k = 0; k < pairs; ++k) {
        const float exponent = static_cast<float>(2 * k) * slope;
        const double frequency = static_cast<float>(std::exp(static_cast<double>(exponent)));
        Waves& waves = waves_[k / wave_pairs];
        waves.frequency[k % wave_pairs] = frequency;
        waves.sin_step[k % wave_pairs] = std::sin(frequency);
        waves.cos_step[k % wave_pairs] = std::cos(frequency);
        waves.cos[k % wave_pairs] = 1.0;
    }
}

void PositionEncoding::seek(size_t position) {
    if (position == position_) {
        return;
    }
    position_ = position;
    for (Waves& waves : waves_) {
        for (size_t k = 0; k < wave_pairs; ++k) {
            const double angle = static_cast<double>(position) * waves.frequency[k];
            waves.sin[k] = std::sin(angle);
            waves.cos[k] = std::cos(angle);
        }
    }
}

void PositionEncoding::add_next(float* rows, size_t count) {
    using Floats [[gnu::vector_size(wave_pairs * sizeof(float))]] = float;
    for (size_t column = 0; column < hidden_; column += 2 * wave_pairs) {
        Waves& waves = waves_[column / (2 * wave_pairs)];
        const size_t columns = std::min(2 * wave_pairs, hidden_ - column);
        Doubles s = waves.sin;
        Doubles c = waves.cos;
        for (size_t i = 0; i < count; ++i) {
            const Doubles angle = static_cast<double>(position_ + i) * waves.frequency;
            const Doubles error =
                __builtin_convertvector(__builtin_convertvector(angle, Floats), Doubles) - angle;
            const Doubles half_square = 0.5 * error * error;
            const Floats sine = __builtin_convertvector(s + error * c - half_square * s, Floats);
            const Floats cosine = __builtin_convertvector(c - error * s - half_square * c, Floats);
            const Doubles turned = s * waves.cos_step + c * waves.sin_step;
            c = c * waves.cos_step - s * waves.sin_step;
            s = turned;

            std::array<float, 2 * wave_pairs> encoding{};
            for (size_t k = 0; k < wave_pairs; ++k) {
                encoding[2 * k] = sine[k];
                encoding[2 * k + 1] = cosine[k];
            }
            float* const row = rows + i * hidden_ + column;
            for (size_t k = 0; k < columns; ++k) {
                row[k] += encoding[k];
            }
        }
        waves.sin = s;
        waves.cos = c;
    }
    position_ += count;
}

} // namespace spool::pooler
