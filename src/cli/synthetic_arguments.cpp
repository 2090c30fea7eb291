#include "cli/synthetic_arguments.h"

#include <charconv>
#include <string_view>

#include "core/error.h"

namespace spool::cli {

namespace {

int32_t parse_number(std::string_view text, const std::string& whole) {
    int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
        fail(ErrorCode::invalid_argument, "--distance {}: expected tokens, as 2000, or a range, as 500-4000",
             whole);
    }
    return value;
}

} // namespace

void SyntheticArguments::add_to(CLI::App& command, const std::string& group) {
    command.add_option("--samples", samples, "traces to make")->capture_default_str()->group(group);
    command.add_option("--facts", facts, "codes, accounts or turns in one trace")
        ->capture_default_str()
        ->group(group);
    command.add_option("--repeats", repeats, "recall: times each code is asked for")
        ->capture_default_str()
        ->group(group);
    command
        .add_option(
            "--distance", distance,
            "tokens from a statement to the answer that needs it: D, or A-B for uniform in that range")
        ->capture_default_str()
        ->group(group);
    command.add_option("-s,--seed", seed, "the same seed makes the same traces")
        ->capture_default_str()
        ->group(group);
    command
        .add_option("--filler", filler,
                    R"(JSON Lines with natural text in "text" or "think" (default: made-up sentences))")
        ->group(group);
}

SyntheticOptions SyntheticArguments::options(const std::string& task) const {
    SyntheticOptions options;
    options.task = synthetic_task_from_string(task);
    options.samples = samples;
    options.facts = facts;
    options.repeats = repeats;
    const size_t dash = distance.find('-', 1);
    options.distance_low = parse_number(std::string_view(distance).substr(0, dash), distance);
    options.distance_high = dash == std::string::npos
                                ? options.distance_low
                                : parse_number(std::string_view(distance).substr(dash + 1), distance);
    options.seed = seed;
    options.filler = filler;
    return options;
}

} // namespace spool::cli
