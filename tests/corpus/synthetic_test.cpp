#include <map>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "core/file.h"
#include "corpus/prepare.h"
#include "corpus/script.h"
#include "corpus/synthetic.h"
#include "corpus/toy_encoder.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using test::ToyEncoder;

/// Text with long words, punctuation, paragraphs and numbers.
std::string filler_text(uint64_t seed, size_t words) {
    const std::vector<std::string> vocabulary = {"the", "keeper", "remembered", "lighthouse",    "and",
                                                 "a",   "42",     "storm",      "extraordinary", "of",
                                                 "it",  "was",    "harbour",    "nevertheless"};
    Random random(seed);
    std::string text;
    for (size_t i = 0; i < words; ++i) {
        text += vocabulary[random.below(vocabulary.size())];
        const uint64_t mark = random.below(24);
        text += mark == 0 ? ".\n\n" : mark == 1 ? ", " : mark == 2 ? ".\n" : " ";
    }
    return text;
}

class SyntheticTest : public ::testing::Test {
  protected:
    SyntheticTest() {
        options_.filler = (folder_ / "filler.jsonl");
        std::string lines;
        for (uint64_t i = 0; i < 6; ++i) {
            lines += Json({{i % 2 == 0 ? "text" : "think", filler_text(i, 1500)}}).dump() + "\n";
        }
        write_text(options_.filler, lines);
    }

    TemporaryFolder folder_;
    ToyEncoder encoder_;
    SyntheticOptions options_;
};

/// One trace as text, and where its tokens begin in it.
struct Decoded {
    std::string text;
    std::vector<size_t> begins;

    Decoded(const ToyEncoder& encoder, const std::vector<Token>& tokens) {
        for (const Token token : tokens) {
            begins.push_back(text.size());
            text += encoder.piece(token);
        }
    }
    /// Tokens before the byte, which must be where one begins.
    int32_t index(size_t byte) const {
        const auto found = std::ranges::lower_bound(begins, byte);
        EXPECT_EQ(*found, byte);
        return static_cast<int32_t>(found - begins.begin());
    }
    std::string piece(const Answer& answer) const {
        const size_t begin = begins[static_cast<size_t>(answer.offset)];
        return text.substr(
            begin, begins[static_cast<size_t>(answer.offset) + static_cast<size_t>(answer.length)] - begin);
    }
    /// The line that holds the answer, up to it.
    std::string lead(const Answer& answer) const {
        const size_t end = begins[static_cast<size_t>(answer.offset)];
        const size_t begin = text.rfind('\n', end) + 1;
        return text.substr(begin, end - begin);
    }
};

/// The bytes behind the line that holds the last match of `pattern` before `limit`, and its first group.
std::pair<size_t, std::string> last_match(const std::string& text, size_t limit, const std::string& pattern) {
    const std::regex regex(pattern);
    std::pair<size_t, std::string> result;
    const std::string before = text.substr(0, limit);
    for (auto it = std::sregex_iterator(before.begin(), before.end(), regex); it != std::sregex_iterator();
         ++it) {
        result = {text.find('\n', static_cast<size_t>(it->position())) + 1, (*it)[1]};
    }
    return result;
}

void expect_range(const Answer& answer, const SyntheticOptions& options) {
    EXPECT_GE(answer.distance, options.distance_low);
    EXPECT_LE(answer.distance, options.distance_high);
}

TEST_F(SyntheticTest, recall_asks_for_every_code_at_the_distance_measured_in_tokens) {
    for (const auto& [low, high, facts] :
         {std::tuple(600, 600, 5), std::tuple(90, 1500, 12), std::tuple(70, 75, 1)}) {
        options_.distance_low = low;
        options_.distance_high = high;
        options_.facts = facts;
        const Synthesizer synthesizer(options_, encoder_, 0.1);
        for (size_t sample = 0; sample < 4; ++sample) {
            const SyntheticTrace trace = synthesizer.make(sample);
            const Decoded decoded(encoder_, trace.tokens);
            ASSERT_EQ(trace.answers.size(), static_cast<size_t>(facts));
            for (const Answer& answer : trace.answers) {
                expect_range(answer, options_);
                const std::string lead = decoded.lead(answer);
                const std::string fact = lead.substr(lead.find("? ") + 2);
                const size_t limit = decoded.begins[static_cast<size_t>(answer.offset)] - lead.size();
                const auto [end, code] = last_match(decoded.text, limit, fact + "(\\d+)\\.");
                EXPECT_EQ(decoded.piece(answer), code) << lead;
                EXPECT_EQ(answer.offset - decoded.index(end), answer.distance);
            }
        }
    }
}

TEST_F(SyntheticTest, ledger_balances_follow_from_the_payments) {
    options_.task = SyntheticTask::ledger;
    options_.facts = 6;
    options_.distance_low = 200;
    options_.distance_high = 800;
    const Synthesizer synthesizer(options_, encoder_, 0.1);
    const std::regex payment(R"((\w+) (opens an account with|pays in|takes out) (\d+) coins\.)");
    for (size_t sample = 0; sample < 4; ++sample) {
        const SyntheticTrace trace = synthesizer.make(sample);
        const Decoded decoded(encoder_, trace.tokens);
        ASSERT_EQ(trace.answers.size(), 6U);
        for (const Answer& answer : trace.answers) {
            expect_range(answer, options_);
            const std::string lead = decoded.lead(answer);
            const std::string name =
                lead.substr(lead.find("? ") + 2, lead.rfind(" has ") - lead.find("? ") - 2);
            int balance = 0;
            size_t end = 0;
            std::istringstream lines(
                decoded.text.substr(0, decoded.begins[static_cast<size_t>(answer.offset)]));
            size_t begin = 0;
            for (std::string line; std::getline(lines, line); begin += line.size() + 1) {
                std::smatch match;
                if (std::regex_match(line, match, payment) && match[1] == name) {
                    balance += match[2] == "takes out" ? -std::stoi(match[3]) : std::stoi(match[3]);
                    end = begin + line.size() + 1;
                }
            }
            EXPECT_EQ(decoded.piece(answer), std::to_string(balance)) << name;
            EXPECT_EQ(answer.offset - decoded.index(end), answer.distance);
        }
    }
}

TEST_F(SyntheticTest, rally_results_follow_each_from_the_one_before) {
    options_.task = SyntheticTask::rally;
    options_.facts = 7;
    options_.distance_low = 100;
    options_.distance_high = 300;
    const Synthesizer synthesizer(options_, encoder_, 0.1);
    for (size_t sample = 0; sample < 4; ++sample) {
        const SyntheticTrace trace = synthesizer.make(sample);
        const Decoded decoded(encoder_, trace.tokens);
        ASSERT_EQ(trace.answers.size(), 7U);
        for (const Answer& answer : trace.answers) {
            expect_range(answer, options_);
            const std::string lead = decoded.lead(answer);
            const size_t limit = decoded.begins[static_cast<size_t>(answer.offset)] - lead.size();
            const auto [end, number] = last_match(decoded.text, limit, R"(result is (\d+)\.)");
            std::smatch match;
            ASSERT_TRUE(std::regex_search(lead, match,
                                          std::regex(R"(Take the last result, (add|subtract) (\d+)\.)")));
            const int amount = match[1] == "add" ? std::stoi(match[2]) : -std::stoi(match[2]);
            EXPECT_EQ(decoded.piece(answer), std::to_string(std::stoi(number) + amount));
            EXPECT_EQ(answer.offset - decoded.index(end), answer.distance);
        }
    }
}

TEST_F(SyntheticTest, the_prompt_holds_no_fact_and_the_ids_are_those_of_the_whole_text) {
    for (const bool opens : {false, true}) {
        encoder_.opens_think = opens;
        const SyntheticTrace trace = Synthesizer(options_, encoder_, 0).make(3);
        const std::span tokens(trace.tokens);
        const std::string prompt = encoder_.text(tokens.first(static_cast<size_t>(trace.prompt)));
        EXPECT_TRUE(prompt.ends_with(opens ? "assistant:\n<think>\n" : "assistant:\n"));
        EXPECT_EQ(prompt.find_first_of("0123456789"), std::string::npos);
        auto reply = tokens.subspan(static_cast<size_t>(trace.prompt));
        EXPECT_EQ(reply.back(), ToyEncoder::end_token);
        reply = reply.first(reply.size() - 1);
        EXPECT_EQ(encoder_.reply(encoder_.text(reply)), std::vector<Token>(reply.begin(), reply.end()));
    }
}

TEST_F(SyntheticTest, the_same_seed_and_index_make_the_same_trace_and_others_another) {
    const auto tokens = [&](uint64_t seed, size_t index) {
        options_.seed = seed;
        return Synthesizer(options_, encoder_, 0.1).make(index).tokens;
    };
    const auto first = tokens(1, 0);
    EXPECT_EQ(tokens(1, 0), first);
    EXPECT_NE(tokens(1, 1), first);
    EXPECT_NE(tokens(2, 0), first);
}

TEST_F(SyntheticTest, validation_reads_filler_that_does_not_train) {
    write_text(options_.filler,
               Json({{"text", filler_text(1, 2000) + "\n\nVALIDATION " + filler_text(2, 400)}}).dump());
    const Filler filler(options_.filler, {}, 0.2);
    EXPECT_EQ(filler.text(false).find("VALIDATION"), std::string::npos);
    EXPECT_LT(filler.text(true).size(), filler.text(false).size() / 3);
    EXPECT_GT(filler.text(true).size(), filler.text(false).size() / 5);
}

TEST_F(SyntheticTest, filler_is_cut_to_any_number_of_tokens) {
    const Filler filler(options_.filler, {}, 0);
    Random random(1);
    FillerReader reader(filler.text(false), random);
    for (size_t tokens = smallest_gap; tokens < 300; ++tokens) {
        const std::string line = reader.take(encoder_, tokens);
        EXPECT_EQ(line_tokens(encoder_, line).size(), tokens);
        EXPECT_TRUE(line.ends_with('\n'));
        EXPECT_FALSE(line.starts_with(' '));
    }
    EXPECT_EQ(line_tokens(encoder_, reader.take(encoder_, 30000)).size(), 30000U)
        << "longer than the filler: again";
}

TEST_F(SyntheticTest, a_code_can_be_asked_for_again_at_the_distance_from_its_last_answer) {
    options_.distance_low = options_.distance_high = 150;
    options_.facts = 2;
    options_.repeats = 3;
    const SyntheticTrace trace = Synthesizer(options_, encoder_, 0.1).make(1);
    const Decoded decoded(encoder_, trace.tokens);
    ASSERT_EQ(trace.answers.size(), 6U);
    std::map<std::string, std::vector<Answer>> by_lead;
    for (const Answer& answer : trace.answers) {
        by_lead[decoded.lead(answer)].push_back(answer);
    }
    ASSERT_EQ(by_lead.size(), 2U);
    for (const auto& [lead, answers] : by_lead) {
        ASSERT_EQ(answers.size(), 3U);
        for (size_t i = 1; i < 3; ++i) {
            EXPECT_EQ(decoded.piece(answers[i]), decoded.piece(answers[0]));
            EXPECT_GT(answers[i].offset - answers[i - 1].offset, 150);
            EXPECT_LT(answers[i].offset - answers[i - 1].offset, 170);
        }
    }
}

TEST_F(SyntheticTest, made_up_sentences_fill_where_no_text_is_given) {
    options_.filler.clear();
    options_.distance_low = options_.distance_high = 700;
    options_.facts = 2;
    const SyntheticTrace trace = Synthesizer(options_, encoder_, 0.1).make(3);
    EXPECT_EQ(trace.answers.size(), 2U);
    EXPECT_EQ(trace.answers.front().distance, 700);
    const Filler filler;
    EXPECT_NE(filler.text(true), filler.text(false));
    EXPECT_EQ(filler.text(false).find_first_of("0123456789"), std::string::npos);
    EXPECT_EQ(filler.text(false), Filler().text(false));
}

TEST_F(SyntheticTest, what_cannot_be_made_is_refused_with_what_can) {
    const auto refuses = [&](ErrorCode code, std::initializer_list<std::string_view> words) {
        expect_error(code, words, [&] { Synthesizer(options_, encoder_, 0.1).make(0); });
        options_ = {.filler = (folder_ / "filler.jsonl")};
    };
    options_.distance_low = options_.distance_high = 10;
    refuses(ErrorCode::invalid_argument, {"--distance 10", "or more"});
    options_.distance_low = 2000;
    refuses(ErrorCode::invalid_argument, {"--distance 2000-1024"});
    options_.facts = 0;
    refuses(ErrorCode::invalid_argument, {"--facts 0"});
    options_.facts = 385;
    refuses(ErrorCode::invalid_argument, {"--facts 385", "384"});
    options_.filler = (folder_ / "missing.jsonl");
    refuses(ErrorCode::not_found, {"missing.jsonl"});
    write_text((folder_ / "other.jsonl"), R"({"prompt":"Why?"})");
    options_.filler = (folder_ / "other.jsonl");
    refuses(ErrorCode::bad_file, {"other.jsonl", "\"text\""});
    expect_error(ErrorCode::invalid_argument, {"chess", "recall, ledger or rally"},
                 [] { synthetic_task_from_string("chess"); });
}

TEST_F(SyntheticTest, answers_reach_the_trainer_through_the_shards) {
    PrepareOptions options;
    options.destination = (folder_ / "shards");
    options.base.vocab_sha256 = std::string(64, '0');
    options.vocab_size = ToyEncoder::vocab_size;
    options.val_share = 0.3;
    options.shard_tokens = 6000;
    options_.samples = 12;
    const auto report = prepare(options_, options, encoder_);
    EXPECT_EQ(report.index["settings"]["synthetic"], "recall");
    EXPECT_EQ(report.index["settings"]["distance"], (Json{1024, 1024}));
    const TokenShards train(options.destination, "train");
    const TokenShards val(options.destination, "val");
    ASSERT_EQ(train.size() + val.size(), 12U);
    EXPECT_GT(val.size(), 0U);
    const Synthesizer synthesizer(options_, encoder_, 0.3);
    size_t next_train = 0;
    size_t next_val = 0;
    for (size_t i = 0; i < 12; ++i) {
        const SyntheticTrace made = synthesizer.make(i);
        const TraceView read = made.validation ? val.trace(next_val++) : train.trace(next_train++);
        EXPECT_EQ(std::vector<Token>(read.tokens.begin(), read.tokens.end()), made.tokens);
        EXPECT_EQ(read.prompt, made.prompt);
        ASSERT_EQ(read.answers.size(), 4U);
        EXPECT_EQ(read.answers[3].offset, made.answers[3].offset);
        EXPECT_EQ(read.answers[3].distance, 1024);
    }
}

} // namespace
} // namespace spool
