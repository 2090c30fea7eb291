// AttnPoolSP by the book, in double precision: every past token is projected by W_k and W_v, nothing is
// folded, nothing is tiled.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "pooler/pooler.h"

namespace spool::test {

using Matrix = std::vector<std::vector<double>>; // [rows][features]

class ReferencePooler {
  public:
    explicit ReferencePooler(const PoolerWeights& weights) : weights_(weights), shape_(weights.shape) {}

    /// `rows`: [length * hidden].
    PoolResult pool(const std::vector<float>& rows) const {
        const Matrix past = encode(rows);
        Matrix query(shape_.n_sp, std::vector<double>(shape_.hidden));
        for (size_t i = 0; i < query.size() * shape_.hidden; ++i) {
            query[i / shape_.hidden][i % shape_.hidden] = at("query")[i];
        }
        std::vector<double> mass(past.size());
        for (uint32_t i = 0; i < shape_.layers; ++i) {
            const std::string block = "blocks." + std::to_string(i) + ".";
            add(query,
                attention(block + "cross.", norm(block + "lnq1", query), norm(block + "lnk", past), &mass));
            const Matrix normed = norm(block + "lnq2", query);
            add(query, attention(block + "selfa.", normed, normed, nullptr));
            Matrix inner =
                linear(block + "ffn.0.weight", block + "ffn.0.bias", 0, norm(block + "lnq3", query));
            for (std::vector<double>& row : inner) {
                for (double& x : row) {
                    x = 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
                }
            }
            add(query, linear(block + "ffn.2.weight", block + "ffn.2.bias", 0, inner));
        }
        PoolResult result;
        for (const std::vector<double>& row : norm("ln_out", query)) {
            double square = 0.0;
            for (const double x : row) {
                square += x * x;
            }
            for (const double x : row) {
                result.soft_prompt.push_back(static_cast<float>(
                    x / std::sqrt(square) * std::abs(static_cast<double>(weights_.out_scale))));
            }
        }
        result.mass.assign(mass.begin(), mass.end());
        return result;
    }

  private:
    const std::vector<float>& at(const std::string& name) const { return weights_.tensors.at(name); }

    Matrix encode(const std::vector<float>& rows) const {
        Matrix past(rows.size() / shape_.hidden, std::vector<double>(shape_.hidden));
        const auto slope = static_cast<float>(-std::log(10000.0) / shape_.hidden);
        for (size_t i = 0; i < past.size(); ++i) {
            for (size_t column = 0; column < shape_.hidden; ++column) {
                const float exponent = static_cast<float>(column - column % 2) * slope;
                const auto frequency = static_cast<float>(std::exp(static_cast<double>(exponent)));
                const double angle = static_cast<float>(i) * frequency;
                past[i][column] = rows[i * shape_.hidden + column] +
                                  static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
            }
        }
        return past;
    }

    static void add(Matrix& to, const Matrix& values) {
        for (size_t i = 0; i < to.size(); ++i) {
            for (size_t j = 0; j < to[i].size(); ++j) {
                to[i][j] += values[i][j];
            }
        }
    }

    Matrix norm(const std::string& name, Matrix rows) const {
        for (std::vector<double>& row : rows) {
            const auto size = static_cast<double>(row.size());
            double mean = 0.0;
            for (const double x : row) {
                mean += x / size;
            }
            double variance = 0.0;
            for (const double x : row) {
                variance += (x - mean) * (x - mean) / size;
            }
            for (size_t i = 0; i < row.size(); ++i) {
                row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * at(name + ".weight")[i] +
                         at(name + ".bias")[i];
            }
        }
        return rows;
    }

    /// Rows [first, first + out) of the weight; all of them when `out` is 0.
    Matrix linear(const std::string& weight, const std::string& bias, size_t first, const Matrix& in,
                  size_t out = 0) const {
        const size_t depth = in.front().size();
        out = out == 0 ? at(bias).size() : out;
        Matrix result(in.size(), std::vector<double>(out));
        for (size_t i = 0; i < in.size(); ++i) {
            for (size_t row = 0; row < out; ++row) {
                double sum = at(bias)[first + row];
                for (size_t k = 0; k < depth; ++k) {
                    sum += static_cast<double>(at(weight)[(first + row) * depth + k]) * in[i][k];
                }
                result[i][row] = sum;
            }
        }
        return result;
    }

    Matrix attention(const std::string& name, const Matrix& queries, const Matrix& keys,
                     std::vector<double>* mass) const {
        const size_t hidden = shape_.hidden;
        const size_t width = hidden / shape_.heads;
        const std::string weight = name + "in_proj_weight";
        const std::string bias = name + "in_proj_bias";
        const Matrix q = linear(weight, bias, 0, queries, hidden);
        const Matrix k = linear(weight, bias, hidden, keys, hidden);
        const Matrix v = linear(weight, bias, 2 * hidden, keys, hidden);
        Matrix joined(queries.size(), std::vector<double>(hidden));
        for (size_t i = 0; i < queries.size(); ++i) {
            for (size_t head = 0; head < shape_.heads; ++head) {
                std::vector<double> p(keys.size());
                for (size_t j = 0; j < keys.size(); ++j) {
                    for (size_t c = head * width; c < (head + 1) * width; ++c) {
                        p[j] += q[i][c] * k[j][c] / std::sqrt(static_cast<double>(width));
                    }
                }
                const double top = *std::ranges::max_element(p);
                double total = 0.0;
                for (double& x : p) {
                    x = std::exp(x - top);
                    total += x;
                }
                for (size_t j = 0; j < keys.size(); ++j) {
                    const double share = p[j] / total;
                    if (mass != nullptr) {
                        (*mass)[j] += share / shape_.heads;
                    }
                    for (size_t c = head * width; c < (head + 1) * width; ++c) {
                        joined[i][c] += share * v[j][c];
                    }
                }
            }
        }
        return linear(name + "out_proj.weight", name + "out_proj.bias", 0, joined);
    }

    const PoolerWeights& weights_;
    PoolerShape shape_;
};

} // namespace spool::test
