#include "eval/problems.h"

#include <fmt/core.h>

#include "core/error.h"
#include "core/json.h"
#include "core/random.h"
#include "corpus/json_lines.h"

namespace spool {

namespace {

/// What stands behind the last `mark`, up to `end`.
std::string behind_last(const std::string& text, const std::string& mark, char end) {
    const size_t at = text.rfind(mark);
    if (at == std::string::npos) {
        return "";
    }
    const size_t begin = text.find_first_not_of(' ', at + mark.size());
    return begin == std::string::npos ? "" : text.substr(begin, text.find(end, begin) - begin);
}

std::string field(const Json& record, const char* name) {
    const auto found = record.find(name);
    return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

/// "A: question B: reply \ANSWER{N}. A: ..." as further turns.
void add_follow_ups(const std::string& text, Problem& problem) {
    size_t at = text.find("A:");
    while (at != std::string::npos) {
        const size_t reply = text.find("B:", at);
        if (reply == std::string::npos) {
            return;
        }
        const size_t next = text.find("A:", reply);
        std::string question = text.substr(at + 2, reply - at - 2);
        question.erase(0, question.find_first_not_of(" \n"));
        question.erase(question.find_last_not_of(" \n") + 1);
        const std::string answer = behind_last(text.substr(reply, next - reply), "\\ANSWER{", '}');
        if (question.empty() || answer.empty()) {
            return;
        }
        problem.questions.push_back(question);
        problem.answers.push_back(answer);
        at = next;
    }
}

} // namespace

const std::vector<Problem>& battery_problems() {
    static const std::vector<Problem> problems = {
        {"animals",
         {"A yard holds chickens and cows, 30 animals in all. Together they stand on 74 legs. How many "
          "chickens "
          "and how many cows are there?"},
         {"23 chickens, 7 cows"}},
        {"clips",
         {"Natalia sold paper clips to 48 of her friends in April, one each, and half as many in May. How "
          "many "
          "did she sell in the two months together?"},
         {"72"}},
        {"speed",
         {"A cyclist rides 60 kilometers in 1.5 hours. At the same speed, how far does she get in 4 hours?"},
         {"160 kilometers"}},
        {"product", {"What is 17 times 24?"}, {"408"}},
        {"discount", {"After a discount of 20% a book costs $20. What did it cost before?"}, {"$25"}},
        {"tallest",
         {"Tom is taller than Ann. Sam is taller than Tom. Ann is taller than Lee. Who is the tallest of the "
          "four?"},
         {"Sam"}}};
    return problems;
}

std::vector<Problem> read_problems(const std::filesystem::path& path) {
    std::vector<Problem> problems;
    JsonLines lines(path);
    while (const auto record = lines.next()) {
        Problem problem;
        problem.id = fmt::format("{}", problems.size() + 1);
        if (record->is_object()) {
            const std::string question = field(*record, "question");
            const std::string answer = field(*record, "answer");
            problem.questions = {question.empty() ? field(*record, "problem") : question};
            problem.answers = {question.empty() ? answer : behind_last(answer, "####", '\n')};
            if (const std::string id = field(*record, "unique_id"); !id.empty()) {
                problem.id = id;
            }
            add_follow_ups(field(*record, "followup"), problem);
        }
        if (problem.questions.empty() || problem.questions[0].empty() || problem.answers[0].empty()) {
            fail(ErrorCode::bad_file,
                 "{}: record {} has no question with an answer; expected \"question\" and \"answer\" with "
                 "\"#### N\", or \"problem\" and \"answer\"",
                 path.string(), problems.size() + 1);
        }
        problems.push_back(std::move(problem));
    }
    if (problems.empty()) {
        fail(ErrorCode::bad_file, "{}: holds no problems", path.string());
    }
    return problems;
}

Problem rally_chain(uint64_t seed, size_t turns) {
    Problem chain{.id = fmt::format("chain {}", seed), .questions = {}, .answers = {}};
    const auto add = [&](const std::string& question, int64_t result) {
        chain.questions.push_back(question);
        chain.answers.push_back(std::to_string(result));
    };
    if (seed == 0 && turns == 5) {
        add("Start with 3 and add 5. What is the result?", 8);
        add("Subtract 2 from the last result. What is it now?", 6);
        add("Multiply the last result by 2. What is it now?", 12);
        add("Subtract 4 from the last result. What is it now?", 8);
        add("Divide the last result by 2. What is it now?", 4);
        return chain;
    }
    Random random(seed * 0x9E3779B97F4A7C15ULL + 7);
    const auto between = [&](int64_t low, int64_t high) {
        return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
    };
    int64_t result = between(2, 9);
    const int64_t first = between(2, 9);
    add(fmt::format("Start with {} and add {}. What is the result?", result, first), result + first);
    result += first;
    while (chain.questions.size() < turns) {
        const int64_t amount = between(2, 9);
        if (result > 40 && result % 2 == 0 && random.below(2) == 0) {
            result /= 2;
            add("Divide the last result by 2. What is it now?", result);
        } else if (result < 20 && random.below(3) == 0) {
            result *= 2;
            add("Multiply the last result by 2. What is it now?", result);
        } else if (result > amount && random.below(2) == 0) {
            result -= amount;
            add(fmt::format("Subtract {} from the last result. What is it now?", amount), result);
        } else {
            result += amount;
            add(fmt::format("Add {} to the last result. What is it now?", amount), result);
        }
    }
    return chain;
}

} // namespace spool
