// Choosing one token from the logits of vocabularies of 49,152 (SmolLM2) and 151,936 tokens (Qwen2), by the
// chains that the command line can ask for. `argmax`, a plain search for the largest logit, is the reference:
// no sampler can be faster.
//     build/bin/sampler_bench [--benchmark_filter=default]
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/random.h"
#include "eval/random_model.h"
#include "llm/sampler.h"

namespace spool {
namespace {

/// A file with the smallest vocabulary libllama accepts: two control tokens and the letters.
void write_letters(const std::filesystem::path& path) {
    std::vector<std::string> tokens = {"<s>", "</s>"};
    std::vector<int32_t> types = {3, 3}; // LLAMA_TOKEN_TYPE_CONTROL, then NORMAL
    for (char letter = 'a'; letter <= 'z'; ++letter) {
        tokens.emplace_back(1, letter);
        types.push_back(1);
    }
    GgufWriter writer;
    writer.set("general.architecture", std::string("llama"));
    writer.set("tokenizer.ggml.model", std::string("gpt2"));
    writer.set("tokenizer.ggml.pre", std::string("gpt-2"));
    writer.set("tokenizer.ggml.tokens", GgufArray(std::move(tokens)));
    writer.set("tokenizer.ggml.token_type", GgufArray(std::move(types)));
    writer.set("tokenizer.ggml.merges", GgufArray(std::vector<std::string>{"a b"}));
    writer.set("tokenizer.ggml.bos_token_id", uint32_t{0});
    writer.set("tokenizer.ggml.eos_token_id", uint32_t{1});
    writer.write(path);
}

/// A vocabulary of any size, whose tokens never occur in text: the samplers see only ids and logits.
class Vocabulary {
  public:
    explicit Vocabulary(int64_t size) {
        std::string folder = (std::filesystem::temp_directory_path() / "spool-bench-XXXXXX").string();
        if (::mkdtemp(folder.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), folder);
        }
        const std::filesystem::path letters = folder + "/letters.gguf";
        const std::filesystem::path path = folder + "/model.gguf";
        write_letters(letters);
        RandomModelShape shape;
        shape.layers = 1;
        shape.width = 32;
        write_random_model(path, shape, GgufFile(letters), static_cast<uint32_t>(size));
        ModelOptions options;
        options.path = path;
        model_ = std::make_unique<Model>(options);
        tokenizer_ = std::make_unique<Tokenizer>(*model_);
        std::filesystem::remove_all(folder); // what is mapped stays readable
        // Normal with a standard deviation of 3, about what language models give.
        Random random(1);
        logits_.resize(static_cast<size_t>(size));
        std::ranges::generate(logits_, [&] { return static_cast<float>(3.0 * random.normal()); });
    }

    const Tokenizer& tokenizer() const { return *tokenizer_; }
    const std::vector<float>& logits() const { return logits_; }

  private:
    std::unique_ptr<Model> model_;
    std::unique_ptr<Tokenizer> tokenizer_;
    std::vector<float> logits_;
};

SamplerOptions greedy() {
    SamplerOptions options;
    options.temperature = 0;
    return options;
}

SamplerOptions penalties() {
    SamplerOptions options;
    options.repeat_penalty = 1.1F;
    options.presence_penalty = 0.1F;
    return options;
}

SamplerOptions penalties_and_dry() {
    SamplerOptions options = penalties();
    options.dry_multiplier = 0.8F;
    return options;
}

SamplerOptions without_top_k() {
    SamplerOptions options;
    options.top_k = 0;
    return options;
}

void argmax(benchmark::State& state) {
    const Vocabulary vocabulary(state.range(0));
    for ([[maybe_unused]] auto _ : state) {
        benchmark::DoNotOptimize(std::ranges::max_element(vocabulary.logits()));
    }
}

void sampler(benchmark::State& state, const SamplerOptions& options) {
    const Vocabulary vocabulary(state.range(0));
    Sampler sampler(vocabulary.tokenizer(), options);
    for ([[maybe_unused]] auto _ : state) {
        benchmark::DoNotOptimize(sampler.sample(vocabulary.logits()));
    }
}

void sizes(benchmark::internal::Benchmark* benchmark) {
    benchmark->Arg(49152)->Arg(151936)->Unit(benchmark::kMicrosecond);
}

BENCHMARK(argmax)->Apply(sizes);
BENCHMARK_CAPTURE(sampler, greedy, greedy())->Apply(sizes);
BENCHMARK_CAPTURE(sampler, default, SamplerOptions())->Apply(sizes);
BENCHMARK_CAPTURE(sampler, penalties, penalties())->Apply(sizes);
BENCHMARK_CAPTURE(sampler, penalties_and_dry, penalties_and_dry())->Apply(sizes);
BENCHMARK_CAPTURE(sampler, without_top_k, without_top_k())->Apply(sizes);

} // namespace
} // namespace spool

BENCHMARK_MAIN();
