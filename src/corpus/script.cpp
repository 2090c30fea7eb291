#include "corpus/script.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace spool {

namespace {

constexpr std::array<std::string_view, 16> colours = {
    "red",    "blue",   "green", "yellow", "white",  "black",  "grey",  "brown",
    "purple", "orange", "pink",  "golden", "silver", "copper", "ivory", "crimson"};
constexpr std::array<std::string_view, 24> things = {
    "lantern", "door",   "boat",   "tower", "garden", "bridge", "clock",  "wagon",
    "mirror",  "ladder", "kettle", "drum",  "engine", "letter", "basket", "window",
    "bell",    "cabin",  "piano",  "kite",  "barrel", "statue", "tunnel", "compass"};
constexpr std::array<std::string_view, 48> names = {
    "Mara",  "Jonas",  "Elena", "Victor", "Ruth",  "Oscar",  "Nadia", "Felix", "Clara", "Hugo",
    "Irene", "Leo",    "Agnes", "Bruno",  "Celia", "Dario",  "Edith", "Frank", "Greta", "Harold",
    "Ida",   "Jack",   "Karen", "Louis",  "Maria", "Nils",   "Olga",  "Peter", "Rosa",  "Simon",
    "Tessa", "Ulrich", "Vera",  "Walter", "Anna",  "Boris",  "Diana", "Emil",  "Flora", "Gustav",
    "Helen", "Ivan",   "Julia", "Kurt",   "Lydia", "Martin", "Nora",  "Paul"};

/// The first `count` numbers of a shuffled 0 .. size - 1.
std::vector<size_t> draw(size_t count, size_t size, Random& random) {
    std::vector<size_t> all(size);
    for (size_t i = 0; i < size; ++i) {
        all[i] = i;
    }
    for (size_t i = 0; i < count; ++i) {
        std::swap(all[i], all[i + random.below(size - i)]);
    }
    all.resize(count);
    return all;
}

int64_t between(int64_t low, int64_t high, Random& random) {
    return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

void check_facts(const SyntheticOptions& options, size_t most) {
    if (options.facts < 1 || static_cast<size_t>(options.facts) > most) {
        fail(ErrorCode::invalid_argument, "--facts {}: {} takes 1 to {}", options.facts,
             to_string(options.task), most);
    }
}

int32_t distance(const SyntheticOptions& options, Random& random) {
    return static_cast<int32_t>(between(options.distance_low, options.distance_high, random));
}

/// A line that ends in `answer` and a full stop.
ScriptLine answering(std::string text, int64_t answer, std::string_view tail, int32_t distance) {
    const std::string number = std::to_string(answer);
    const size_t begin = text.size();
    text += number;
    text += tail;
    return {
        .text = std::move(text), .answer_begin = begin, .answer_bytes = number.size(), .distance = distance};
}

Script write_recall(const SyntheticOptions& options, Random& random) {
    check_facts(options, colours.size() * things.size());
    if (options.repeats < 1 || options.repeats > 1000) {
        fail(ErrorCode::invalid_argument, "--repeats {}: expected 1 to 1000", options.repeats);
    }
    Script script;
    script.prompt =
        "Think aloud for as long as you like. Codes will be noted in between; when you come to the "
        "question for one, answer it from memory.";
    for (const size_t item :
         draw(static_cast<size_t>(options.facts), colours.size() * things.size(), random)) {
        const auto thing =
            fmt::format("{} {}", colours[item % colours.size()], things[item / colours.size()]);
        const int64_t code = between(100, 999, random);
        script.lines.push_back({.text = fmt::format("The code of the {} is {}.", thing, code)});
        for (int32_t i = 0; i < options.repeats; ++i) {
            script.lines.push_back(
                answering(fmt::format("What is the code of the {}? The code of the {} is ", thing, thing),
                          code, ".", distance(options, random)));
        }
    }
    script.closing = "Every code that was asked for has been answered.";
    return script;
}

Script write_ledger(const SyntheticOptions& options, Random& random) {
    check_facts(options, names.size());
    Script script;
    script.prompt =
        "Think aloud for as long as you like. Payments will be noted in between; keep the accounts, and "
        "when you come to the question for a balance, answer it.";
    for (const size_t item : draw(static_cast<size_t>(options.facts), names.size(), random)) {
        const std::string_view name = names[item];
        int64_t balance = between(100, 900, random);
        script.lines.push_back({.text = fmt::format("{} opens an account with {} coins.", name, balance)});
        for (int64_t changes = between(1, 2, random); changes > 0; --changes) {
            const int64_t amount = between(11, 99, random);
            const bool pays_in = balance < 200 || random.below(2) == 0;
            balance += pays_in ? amount : -amount;
            script.lines.push_back(
                {.text = fmt::format("{} {} {} coins.", name, pays_in ? "pays in" : "takes out", amount)});
        }
        script.lines.push_back(answering(fmt::format("How many coins does {} have now? {} has ", name, name),
                                         balance, " coins.", distance(options, random)));
    }
    script.closing = "Every balance that was asked for has been answered.";
    return script;
}

Script write_rally(const SyntheticOptions& options, Random& random) {
    check_facts(options, 1000);
    Script script;
    script.prompt =
        "Think aloud for as long as you like. In between there is a sum to be done with the last result; "
        "keep that number in mind until the next one.";
    int64_t result = between(10, 99, random);
    script.lines.push_back({.text = fmt::format("The first result is {}.", result)});
    for (int32_t turn = 0; turn < options.facts; ++turn) {
        const int64_t amount = between(2, 19, random);
        const bool add = result < 40 || (result < 900 && random.below(2) == 0);
        result += add ? amount : -amount;
        script.lines.push_back(answering(
            fmt::format("Take the last result, {} {}. The result is ", add ? "add" : "subtract", amount),
            result, ".", distance(options, random)));
    }
    script.closing = fmt::format("The last result is {}.", result);
    return script;
}

struct Interval {
    int64_t begin;
    int64_t end;
};

/// Where the lines of the chain that starts at `first` stand from its start on.
std::vector<Interval> chain_intervals(const std::vector<ScriptLine>& lines,
                                      const std::vector<LineSize>& sizes, size_t first) {
    std::vector<Interval> chain = {{0, sizes[first].tokens}};
    for (size_t i = first + 1; i < lines.size() && lines[i].answers(); ++i) {
        const int64_t gap = lines[i].distance - sizes[i].before;
        if (gap < smallest_gap) {
            fail(ErrorCode::invalid_argument,
                 "--distance {} is too short: the question before an answer takes {} tokens and there is "
                 "text before "
                 "it; ask for {} or more",
                 lines[i].distance, sizes[i].before, sizes[i].before + smallest_gap + 8);
        }
        const int64_t begin = chain.back().end + gap;
        chain.push_back({begin, begin + sizes[i].tokens});
    }
    return chain;
}

bool fits(const std::vector<Interval>& placed, const std::vector<Interval>& chain, int64_t start) {
    return std::ranges::none_of(chain, [&](const Interval& line) {
        return std::ranges::any_of(placed, [&](const Interval& other) {
            return start + line.begin < other.end + smallest_gap &&
                   other.begin < start + line.end + smallest_gap;
        });
    });
}

} // namespace

Script write_script(const SyntheticOptions& options, Random& random) {
    switch (options.task) {
    case SyntheticTask::recall:
        return write_recall(options, random);
    case SyntheticTask::ledger:
        return write_ledger(options, random);
    case SyntheticTask::rally:
        return write_rally(options, random);
    }
    fail(ErrorCode::internal, "a synthetic task without a script");
}

std::vector<int64_t> place_lines(const std::vector<ScriptLine>& lines, const std::vector<LineSize>& sizes,
                                 int64_t spread, Random& random) {
    std::vector<Interval> placed;
    int64_t cursor = 0;
    while (placed.size() < lines.size()) {
        const size_t first = placed.size();
        const auto chain = chain_intervals(lines, sizes, first);
        int64_t start = cursor + between(smallest_gap, smallest_gap + spread, random);
        while (!fits(placed, chain, start)) {
            ++start;
        }
        cursor = start + chain.front().end;
        for (const Interval& line : chain) {
            placed.push_back({start + line.begin, start + line.end});
        }
    }
    std::vector<int64_t> starts;
    starts.reserve(placed.size());
    for (const Interval& line : placed) {
        starts.push_back(line.begin);
    }
    return starts;
}

} // namespace spool
