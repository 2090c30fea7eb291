#include "eval/speed.h"

#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <memory>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/bootstrap.h"
#include "core/error.h"
#include "core/progress.h"
#include "core/random.h"
#include "eval/random_model.h"
#include "eval/speed_peer.h"
#include "generation/meter.h"
#include "llm/backend.h"
#include "memory/schedule.h"

namespace spool {

namespace {

constexpr uint32_t pinned = 16;

/// Feeds the most likely next token `count` times; the loop of generate() without text. Returns seconds.
double advance(Session& session, size_t count) {
    const Stopwatch watch;
    for (size_t i = 0; i < count; ++i) {
        const auto logits = session.logits();
        const auto token = static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
        session.read(std::span(&token, 1));
    }
    return watch.seconds();
}

/// Text enough to fill window and slots, so that measuring starts in the steady state.
void fill(Session& session, const SessionPool& pool) {
    const MemorySettings& memory = pool.settings();
    size_t chunks = 3;
    if (memory.strategy == StrategyKind::slots) {
        chunks += memory.max_slots / pool.vectors_per_compaction();
    }
    std::vector<Token> tokens(pinned + memory.window + chunks * memory.chunk);
    for (size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<Token>(i * 37 % 1000 + 100);
    }
    session.read(tokens);
}

MemorySettings settings_for(const Bundle* bundle, uint32_t window, uint32_t chunk, Layout refresh) {
    MemorySettings memory;
    memory.strategy = bundle == nullptr        ? StrategyKind::window
                      : bundle->pooler.empty() ? StrategyKind::slots
                                               : StrategyKind::soft_prompt;
    memory.refresh = refresh;
    memory.window = window;
    memory.chunk = chunk;
    memory.pin = pinned;
    return memory;
}

PoolerWeights random_pooler(const PoolerShape& shape) {
    PoolerWeights weights;
    weights.shape = shape;
    weights.out_scale = 1.5F;
    Random random(1);
    for (const auto& [name, dimensions] : pooler_tensors(shape)) {
        size_t count = 1;
        for (const int64_t dimension : dimensions) {
            count *= static_cast<size_t>(dimension);
        }
        auto& values = weights.tensors[name];
        values.resize(count);
        for (float& value : values) {
            value = static_cast<float>(random.uniform() - 0.5) * 0.07F;
        }
    }
    return weights;
}

/// Runs a program with its output thrown away. Returns wall-clock seconds; throws if it fails.
double run_program(const std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (const auto& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const Stopwatch watch;
    pid_t child = 0;
    const int failed = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (failed != 0 || ::waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail(ErrorCode::io, "{} could not be run to a successful end", arguments[0]);
    }
    return watch.seconds();
}

} // namespace

std::vector<SpeedRow> measure_strategy(const Model& model, const Bundle* bundle, const SpeedOptions& options,
                                       Layout refresh, uint32_t chunk) {
    PoolOptions pool_options = options.pool;
    pool_options.memory = settings_for(bundle, options.window, chunk, refresh);
    SessionPool pool(model, bundle, pool_options);
    const auto session = pool.open();
    fill(*session, pool);

    const bool slots = pool.settings().strategy == StrategyKind::slots;
    const uint32_t n_sp = slots ? 0 : pool.vectors_per_compaction();
    const uint32_t memory_cells = slots ? pool.settings().max_slots : n_sp;
    const std::string adapter = bundle != nullptr && bundle->lora ? bundle->lora->string() : "";
    LlamaPeer peer(model, pinned + memory_cells + options.window + chunk / 2, pool.context().threads(),
                   adapter);
    // Whole chunks, so that every segment holds its share of compactions; the two take turns.
    std::vector<double> ours;
    std::vector<double> theirs;
    std::vector<double> prefill;
    std::vector<double> ratios;
    const size_t segment = std::max<size_t>(chunk, size_t{128 / chunk} * chunk);
    for (size_t done = 0; done < options.tokens && !options.cancelled(); done += segment) {
        ours.push_back(static_cast<double>(segment) / advance(*session, segment));
        theirs.push_back(static_cast<double>(segment) / peer.decode(segment));
        ratios.push_back(ours.back() / theirs.back());
        if (n_sp > 0) {
            prefill.push_back(n_sp / peer.prefill(n_sp));
        }
    }
    if (ours.empty()) {
        fail(ErrorCode::interrupted, "stopped before the first measurement");
    }
    const std::string name =
        fmt::format("{} C={} rw={}{}", n_sp > 0 ? to_string(refresh) : to_string(pool.settings().strategy),
                    chunk, options.window, bundle != nullptr && adapter.empty() ? ", no adapter" : "");
    SpeedRow speed{name,
                   median(ours),
                   "tok/s",
                   median(theirs),
                   median(ratios),
                   slots ? ">= 0.95" : "",
                   adapter.empty() ? "llama.cpp, as many cells filled"
                                   : "llama.cpp, as many cells filled, same adapter"};
    if (n_sp == 0 || refresh != Layout::carry) {
        return {speed};
    }
    const double bound = 1 / (1 + n_sp / median(prefill) / (chunk / median(theirs)));
    speed.wanted = chunk >= 256 ? ">= 0.95" : "";
    SpeedRow share{name + ", of the bound",
                   speed.ratio,
                   "x",
                   bound,
                   speed.ratio / bound,
                   chunk >= 256 ? "" : ">= 0.97",
                   fmt::format("1/(1 + ({}/pp)/({}/tg)), pp {:.0f} tok/s", n_sp, chunk, median(prefill))};
    return {speed, share};
}

std::vector<SpeedRow> measure_flatness(const Model& model, const Bundle* bundle, const SpeedOptions& options,
                                       size_t tokens) {
    PoolOptions pool_options = options.pool;
    pool_options.memory = settings_for(bundle, 128, 64, Layout::carry);
    SessionPool pool(model, bundle, pool_options);
    const auto session = pool.open();
    fill(*session, pool);
    Progress progress("flat", tokens);
    std::vector<double> speeds; // of every 1,000 tokens
    size_t rss_after_warm_up = 0;
    for (size_t done = 0; done + 1000 <= tokens && !options.cancelled(); done += 1000) {
        speeds.push_back(1000 / advance(*session, 1000));
        if (done + 1000 == 2000) {
            rss_after_warm_up = current_rss_bytes();
        }
        progress.update(done + 1000);
    }
    progress.finish();
    if (speeds.size() < 7) {
        fail(ErrorCode::invalid_argument, "flatness needs at least 7,000 tokens");
    }
    const double growth = static_cast<double>(current_rss_bytes()) - static_cast<double>(rss_after_warm_up);
    const double early = speeds[5];
    const double late = speeds.back();
    return {{fmt::format("flat, last 1,000 of {}", speeds.size() * 1000), late, "tok/s", early, late / early,
             ">= 0.97", "tokens 5,000-6,000 of the same run"},
            {"resident growth after warm-up", growth / (1 << 20U), "MiB", 0, 0, "< 8", ""}};
}

std::vector<SpeedRow> measure_pooler(const Model& tokenizer_model, const std::filesystem::path& folder,
                                     int threads) {
    constexpr size_t kept = 4096;
    constexpr size_t chunk = 64;
    const PoolerShape shape{1536, 32, 8, 3, 2048};
    const int count = threads > 0 ? threads : physical_cores();

    const auto file = folder / "random-1.5b-q4_1.gguf";
    write_random_model(file, qwen_1_5b_shape(), GgufFile(tokenizer_model.path()), 151936);
    ModelOptions model_options;
    model_options.path = file;
    const Model model(model_options);
    std::filesystem::remove(file); // stays mapped
    LlamaPeer peer(model, 600, count);
    Pooler pooler(random_pooler(shape), count);
    Random random(2);
    std::vector<float> rows((kept + chunk) * shape.hidden);
    for (float& value : rows) {
        value = static_cast<float>(random.uniform() - 0.5) * 0.1F;
    }
    const PastRows past = [&](size_t first, size_t rows_wanted, float* out) {
        std::copy_n(rows.data() + first * shape.hidden, rows_wanted * shape.hidden, out);
    };
    std::vector<double> pooling;
    std::vector<double> decoding;
    for (int round = 0; round < 3; ++round) {
        const Stopwatch watch;
        pooler.pool(kept + chunk, past);
        pooler.pool(kept, past);
        pooling.push_back(watch.seconds());
        decoding.push_back(peer.decode(chunk));
    }
    return {{"pooling, H=1536, kept 4096, evicting", 1000 * median(pooling), "ms", 1000 * median(decoding),
             median(pooling) / median(decoding), "< 0.10", "64 tokens of a 1.5B Q4_1 model"}};
}

SpeedRow measure_programs(const std::string& name, const std::vector<std::string>& program,
                          const std::vector<std::string>& peer, size_t runs) {
    std::vector<double> ours;
    std::vector<double> theirs;
    run_program(program); // the page cache is warm for both
    run_program(peer);
    for (size_t i = 0; i < runs; ++i) {
        ours.push_back(1000 * run_program(program));
        theirs.push_back(1000 * run_program(peer));
    }
    const double allowed = 1.1 * median(theirs) + 50;
    return {name,
            median(ours),
            "ms",
            median(theirs),
            median(ours) / median(theirs),
            fmt::format("<= {:.0f} ms", allowed),
            "llama-simple -n 1, whole programs"};
}

} // namespace spool
