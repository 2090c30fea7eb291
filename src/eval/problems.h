// Questions with answers: the six-problem battery, and the math sets.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace spool {

/// One or more turns, each with the answer it should end in.
struct Problem {
    std::string id;
    std::vector<std::string> questions;
    std::vector<std::string> answers;
};

/// Six short problems: animals and legs, a sum of two months, speed, a product, a discount, an order.
const std::vector<Problem>& battery_problems();

/// JSON Lines (or .gz) of GSM8K (`question`, `answer` ending in "#### N"), MATH-500 (`problem`, `answer`) or
/// MathChat follow-ups (`question`, `answer`, `followup` of "A: ... B: ... \ANSWER{N}."). Throws
/// Error{bad_file} naming the line of a record without question or answer.
std::vector<Problem> read_problems(const std::filesystem::path& path);

/// A chain of dependent sums, one a turn: "Start with 3 and add 5.", "Now subtract 2." The first of all
/// chains (seed 0, 5 turns) is 3 + 5 = 8, - 2 = 6, x 2 = 12, - 4 = 8, / 2 = 4; every division is even.
Problem rally_chain(uint64_t seed, size_t turns);

} // namespace spool
