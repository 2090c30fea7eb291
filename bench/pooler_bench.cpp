// The pooler's forward pass with random weights: at the reference shape over growing pasts, and at the width
// of the bundle in models/. FLOP a second makes shapes and machines comparable; on one machine it is bounded
// by what a matrix product in float32 reaches.
//     build/bin/pooler_bench [--benchmark_filter=hidden:1536/past:4096]
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/random.h"
#include "llm/backend.h"
#include "pooler/pooler.h"

namespace spool {
namespace {

/// Uniform, with a spread at which no softmax saturates; gains of layer norms around 1.
PoolerWeights random_weights(const PoolerShape& shape) {
    PoolerWeights weights{.shape = shape, .out_scale = 1.0F, .tensors = {}};
    Random random(1);
    for (const auto& [name, sizes] : pooler_tensors(shape)) {
        size_t count = 1;
        for (const int64_t size : sizes) {
            count *= static_cast<size_t>(size);
        }
        const double center = name.find("ln") != std::string::npos && name.ends_with("weight") ? 1.0 : 0.0;
        std::vector<float> values(count);
        std::ranges::generate(values,
                              [&] { return static_cast<float>(center + 0.06 * (random.uniform() - 0.5)); });
        weights.tensors.emplace(name, std::move(values));
    }
    return weights;
}

/// Multiplications and additions of one forward pass (pooler.h): scores and weighted sums over the past, the
/// same for each head with rows of the full width; 4 H^2 for each attention's projections, 2 H ffn.
double floating_point_operations(const PoolerShape& shape, size_t past) {
    const auto [h, n, heads, layers, ffn] = std::tuple<double, double, double, double, double>(
        shape.hidden, shape.n_sp, shape.heads, shape.layers, shape.ffn);
    const double over_past = 4 * n * heads * h * static_cast<double>(past);
    const double projections = 2 * n * (8 * h * h + 2 * h * ffn);
    return layers * (over_past + projections);
}

/// range(0): the width, range(1): tokens of the past.
void pooler(benchmark::State& state) {
    const PoolerShape shape = {
        .hidden = static_cast<uint32_t>(state.range(0)), .n_sp = 32, .heads = 8, .layers = 3, .ffn = 2048};
    const auto past = static_cast<size_t>(state.range(1));
    Pooler pooler(random_weights(shape), physical_cores());
    std::vector<float> values(past * shape.hidden);
    Random random(2);
    std::ranges::generate(values, [&] { return static_cast<float>(random.uniform() - 0.5); });
    const PastRows rows = [&](size_t first, size_t count, float* out) {
        std::copy_n(values.data() + first * shape.hidden, count * shape.hidden, out);
    };
    for ([[maybe_unused]] auto _ : state) {
        benchmark::DoNotOptimize(pooler.pool(past, rows));
    }
    const double total = floating_point_operations(shape, past) * static_cast<double>(state.iterations());
    state.counters["FLOP"] = benchmark::Counter(total, benchmark::Counter::kIsRate);
    state.counters["scratch_MiB"] = static_cast<double>(pooler.scratch_bytes()) / (1 << 20U);
}

BENCHMARK(pooler)
    ->ArgsProduct({{1536, 576}, {64, 576, 4096}})
    ->ArgNames({"hidden", "past"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

} // namespace
} // namespace spool

BENCHMARK_MAIN();
