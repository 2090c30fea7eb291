#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/error.h"
#include "llm/sampler.h"
#include "support/expect_error.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::expect_error;

constexpr float impossible = -1e9F;

/// Everything off: the probabilities are softmax(logits).
SamplerOptions plain() {
    SamplerOptions options;
    options.temperature = 1;
    options.top_k = 0;
    options.top_p = 1;
    options.min_p = 0;
    return options;
}

SamplerOptions greedy() {
    SamplerOptions options = plain();
    options.temperature = 0;
    return options;
}

class SamplerTest : public test::WithSmallModel {
  protected:
    Sampler sampler(const SamplerOptions& options) const { return {tokenizer_, options}; }

    /// Logits of the whole vocabulary: those given, every other token impossible.
    std::vector<float> logits(const std::map<Token, float>& given) const {
        std::vector<float> all(static_cast<size_t>(tokenizer_.size()), impossible);
        for (const auto& [token, value] : given) {
            all[static_cast<size_t>(token)] = value;
        }
        return all;
    }
    /// p = 0.5, 0.3, 0.15, 0.05 for the tokens 10 to 13.
    std::vector<float> four() const {
        return logits(
            {{10, std::log(0.5F)}, {11, std::log(0.3F)}, {12, std::log(0.15F)}, {13, std::log(0.05F)}});
    }
    std::map<Token, int> counts(const SamplerOptions& options, int samples) const {
        Sampler s = sampler(options);
        std::map<Token, int> found;
        const auto given = four();
        for (int i = 0; i < samples; ++i) {
            ++found[s.sample(given)];
        }
        return found;
    }
    std::set<Token> chosen(const SamplerOptions& options) const {
        std::set<Token> tokens;
        for (const auto& [token, count] : counts(options, 1000)) {
            tokens.insert(token);
        }
        return tokens;
    }
    std::vector<Token> stream(Sampler& s, int count) const {
        const std::vector<float> flat(static_cast<size_t>(tokenizer_.size()), 0.0F);
        std::vector<Token> tokens(static_cast<size_t>(count));
        std::ranges::generate(tokens, [&] { return s.sample(flat); });
        return tokens;
    }

    Tokenizer tokenizer_{*model_};
};

TEST_F(SamplerTest, GreedyTakesTheLargestLogit) {
    Sampler s = sampler(greedy());
    EXPECT_EQ(s.sample(logits({{7, 1.0F}, {200, 1.5F}, {303, 1.4F}})), 200);
    EXPECT_EQ(s.sample(logits({{0, 2.0F}, {200, 1.5F}})), 0);
    EXPECT_EQ(s.sample(logits({{303, 2.0F}, {200, 1.5F}})), 303);
    SamplerOptions below_zero = greedy();
    below_zero.temperature = -1;
    EXPECT_EQ(sampler(below_zero).sample(logits({{7, 1.0F}, {200, 1.5F}})), 200);
}

TEST_F(SamplerTest, TheFrequenciesAreTheSoftmaxOfTheLogits) {
    const auto found = counts(plain(), 4000);
    EXPECT_NEAR(found.at(10), 2000, 130);
    EXPECT_NEAR(found.at(11), 1200, 120);
    EXPECT_NEAR(found.at(12), 600, 95);
    EXPECT_NEAR(found.at(13), 200, 60);
}

TEST_F(SamplerTest, TemperatureSharpensAndFlattens) {
    SamplerOptions options = plain();
    options.temperature = 0.5F; // p squared: 0.25, 0.09, ... of 0.365
    EXPECT_NEAR(counts(options, 4000).at(10), 4000 * 0.25 / 0.365, 120);
    options.temperature = 100;
    EXPECT_NEAR(counts(options, 4000).at(13), 1000, 120);
}

TEST_F(SamplerTest, TheSameSeedGivesTheSameTokensAndAnotherOthers) {
    SamplerOptions options = plain();
    options.seed = 1;
    Sampler a = sampler(options);
    Sampler b = sampler(options);
    const auto tokens = stream(a, 50);
    EXPECT_EQ(stream(b, 50), tokens);
    options.seed = 2;
    Sampler other = sampler(options);
    EXPECT_NE(stream(other, 50), tokens);
}

TEST_F(SamplerTest, ARestartRepeatsAPositionAndEveryPositionDiffers) {
    Sampler a = sampler(plain());
    a.restart({}, 5);
    const auto tokens = stream(a, 50);
    stream(a, 7);
    a.restart({}, 5);
    EXPECT_EQ(stream(a, 50), tokens);
    a.restart({}, 6);
    EXPECT_NE(stream(a, 50), tokens);
    Sampler b = sampler(plain());
    b.restart({}, 5);
    EXPECT_EQ(stream(b, 50), tokens) << "another object at the same position goes on alike";
}

TEST_F(SamplerTest, TopKKeepsTheKMostLikely) {
    SamplerOptions options = plain();
    EXPECT_EQ(chosen(options), (std::set<Token>{10, 11, 12, 13}));
    options.top_k = 2;
    EXPECT_EQ(chosen(options), (std::set<Token>{10, 11}));
    options.top_k = 1;
    EXPECT_EQ(chosen(options), (std::set<Token>{10}));
}

TEST_F(SamplerTest, TopPKeepsTheFewestThatReachP) {
    SamplerOptions options = plain();
    options.top_p = 0.45F;
    EXPECT_EQ(chosen(options), (std::set<Token>{10}));
    options.top_p = 0.75F;
    EXPECT_EQ(chosen(options), (std::set<Token>{10, 11}));
    options.top_p = 0.9F;
    EXPECT_EQ(chosen(options), (std::set<Token>{10, 11, 12}));
}

TEST_F(SamplerTest, MinPKeepsWhatReachesThatShareOfTheMostLikely) {
    SamplerOptions options = plain();
    options.min_p = 0.25F; // of 0.5: 0.125
    EXPECT_EQ(chosen(options), (std::set<Token>{10, 11, 12}));
    options.min_p = 0.55F; // 0.275
    EXPECT_EQ(chosen(options), (std::set<Token>{10, 11}));
    options.min_p = 0.05F; // 0.025
    EXPECT_EQ(chosen(options), (std::set<Token>{10, 11, 12, 13}));
}

TEST_F(SamplerTest, EndTokensAreNeverChosenWhenTheyAreIgnored) {
    const Token end = tokenizer_.eos();
    ASSERT_TRUE(tokenizer_.is_end(end));
    const auto given = logits({{end, 9.0F}, {20, 1.0F}});
    SamplerOptions options = greedy();
    EXPECT_EQ(sampler(options).sample(given), end);
    options.ignore_end = true;
    EXPECT_EQ(sampler(options).sample(given), 20);
}

TEST_F(SamplerTest, TheRepeatPenaltyForgetsAfterItsLastN) {
    SamplerOptions options = greedy();
    options.repeat_penalty = 2;
    options.penalty_last_n = 3;
    Sampler s = sampler(options);
    const auto given = logits({{20, 2.0F}, {21, 1.5F}});
    EXPECT_EQ(s.sample(given), 20) << "nothing was said yet";
    EXPECT_EQ(s.sample(given), 21) << "2.0 / 2 < 1.5";
    for (const Token token : {30, 31, 32}) {
        s.accept(token);
    }
    EXPECT_EQ(s.sample(given), 20) << "three other tokens pushed both out";
    options.penalty_last_n = 0;
    Sampler off = sampler(options);
    EXPECT_EQ(off.sample(given), 20);
    EXPECT_EQ(off.sample(given), 20);
}

TEST_F(SamplerTest, TheFrequencyPenaltyGrowsAndThePresencePenaltyDoesNot) {
    const auto given = logits({{20, 2.0F}, {21, 1.5F}});
    SamplerOptions options = greedy();
    options.frequency_penalty = 0.3F;
    Sampler frequency = sampler(options);
    frequency.accept(20);
    EXPECT_EQ(frequency.sample(given), 20) << "2.0 - 0.3 > 1.5; now it was said twice";
    EXPECT_EQ(frequency.sample(given), 21) << "2.0 - 0.6 < 1.5";

    options.frequency_penalty = 0;
    options.presence_penalty = 0.3F;
    Sampler presence = sampler(options);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(presence.sample(given), 20) << "2.0 - 0.3 > 1.5 however often";
    }
    options.presence_penalty = 0.6F;
    Sampler strong = sampler(options);
    strong.accept(20);
    EXPECT_EQ(strong.sample(given), 21) << "2.0 - 0.6 < 1.5";
}

TEST_F(SamplerTest, ARestartFeedsTheHistoryToThePenalties) {
    SamplerOptions options = greedy();
    options.repeat_penalty = 2;
    Sampler s = sampler(options);
    const auto given = logits({{20, 2.0F}, {21, 1.5F}});
    const std::vector<Token> history = {20, 40};
    s.restart(history, 2);
    EXPECT_EQ(s.sample(given), 21);
    s.restart({}, 0);
    EXPECT_EQ(s.sample(given), 20);
}

TEST_F(SamplerTest, DryPenalisesWhatWouldContinueARepetition) {
    SamplerOptions options = greedy();
    options.dry_multiplier = 1;
    options.dry_allowed_length = 2;
    options.dry_sequence_breakers = {};
    const auto given = logits({{52, 3.0F}, {60, 2.9F}});
    const auto after = [&](const SamplerOptions& o, const std::vector<Token>& history) {
        Sampler s = sampler(o);
        for (const Token token : history) {
            s.accept(token);
        }
        return s.sample(given);
    };
    EXPECT_EQ(after(options, {50, 51, 52, 70, 50, 51}), 60) << "50 51 was followed by 52 before";
    EXPECT_EQ(after(options, {50, 51, 53, 70, 50, 51}), 52) << "but not by 52 here";
    EXPECT_EQ(after(options, {51, 52, 70, 71, 80, 51}), 52) << "one token is within the allowed length";
    SamplerOptions off = options;
    off.dry_multiplier = 0;
    EXPECT_EQ(after(off, {50, 51, 52, 70, 50, 51}), 52);
    SamplerOptions forgetful = options;
    forgetful.dry_penalty_last_n = 4;
    EXPECT_EQ(after(forgetful, {50, 51, 52, 70, 50, 51}), 52) << "the first time is out of its memory";
}

TEST_F(SamplerTest, ADryBreakerEndsTheRepetition) {
    const Token colon = tokenizer_.encode(":", false, false).at(0);
    const Token a = tokenizer_.encode("a", false, false).at(0);
    const Token b = tokenizer_.encode("b", false, false).at(0);
    SamplerOptions options = greedy();
    options.dry_multiplier = 1;
    options.dry_allowed_length = 2;
    const auto given = logits({{b, 3.0F}, {60, 2.9F}});
    const auto after_colon = [&](const std::vector<std::string>& breakers) {
        options.dry_sequence_breakers = breakers;
        Sampler s = sampler(options);
        for (const Token token : {a, colon, b, 70, a, colon}) {
            s.accept(token);
        }
        return s.sample(given);
    };
    EXPECT_EQ(after_colon({"\n"}), 60);
    EXPECT_EQ(after_colon({":"}), b);
}

TEST_F(SamplerTest, TheGrammarForcesTheForm) {
    SamplerOptions options = plain();
    options.grammar = R"(root ::= ("yes" | "no") ", " [0-9] [0-9])";
    std::set<std::string> answers;
    for (uint32_t seed = 1; seed <= 20; ++seed) {
        options.seed = seed;
        Sampler s = sampler(options);
        const std::vector<float> flat(static_cast<size_t>(tokenizer_.size()), 0.0F);
        std::string text;
        Token token = s.sample(flat);
        while (!tokenizer_.is_end(token) && text.size() < 20) {
            text += tokenizer_.piece(token);
            token = s.sample(flat);
        }
        ASSERT_TRUE(text.starts_with("yes, ") || text.starts_with("no, ")) << text;
        const std::string digits = text.substr(text.find(' ') + 1);
        ASSERT_EQ(digits.size(), 2U) << text;
        EXPECT_TRUE(std::isdigit(digits[0]) != 0 && std::isdigit(digits[1]) != 0) << text;
        answers.insert(text);
    }
    EXPECT_GT(answers.size(), 5U) << "the grammar leaves the choice to chance";
}

TEST_F(SamplerTest, AChoiceTheGrammarAllowsIsLeftAlone) {
    SamplerOptions options = greedy();
    options.grammar = R"(root ::= [ab]+)";
    const Token a = tokenizer_.encode("a", false, false).at(0);
    const Token b = tokenizer_.encode("b", false, false).at(0);
    const Token c = tokenizer_.encode("c", false, false).at(0);
    Sampler s = sampler(options);
    EXPECT_EQ(s.sample(logits({{a, 1.0F}, {b, 2.0F}, {c, 1.5F}})), b);
    EXPECT_EQ(s.sample(logits({{a, 1.0F}, {b, 2.0F}, {c, 3.0F}})), b)
        << "c would be larger, but is not allowed";
}

TEST_F(SamplerTest, ARestartBeginsTheGrammarAnew) {
    SamplerOptions options = greedy();
    options.grammar = R"(root ::= "ab")";
    const std::vector<float> flat(static_cast<size_t>(tokenizer_.size()), 0.0F);
    Sampler s = sampler(options);
    const auto word = [&] {
        std::string text;
        for (Token token = s.sample(flat); !tokenizer_.is_end(token) && text.size() < 9;
             token = s.sample(flat)) {
            text += tokenizer_.piece(token);
        }
        return text;
    };
    EXPECT_EQ(word(), "ab");
    s.restart({}, 0);
    EXPECT_EQ(word(), "ab");
}

TEST_F(SamplerTest, ValuesOutOfRangeAreNamed) {
    const auto refused = [&](const char* name, auto change) {
        SamplerOptions options;
        change(options);
        expect_error(ErrorCode::invalid_argument, {name}, [&] { sampler(options); });
    };
    refused("temperature", [](SamplerOptions& o) { o.temperature = NAN; });
    refused("top-p", [](SamplerOptions& o) { o.top_p = 0; });
    refused("top-p", [](SamplerOptions& o) { o.top_p = 1.5F; });
    refused("min-p", [](SamplerOptions& o) { o.min_p = -0.1F; });
    refused("repeat-penalty", [](SamplerOptions& o) { o.repeat_penalty = 0; });
    refused("dry-multiplier", [](SamplerOptions& o) { o.dry_multiplier = -1; });
    refused("dry-base", [](SamplerOptions& o) { o.dry_base = 0.5F; });
    refused("grammar", [](SamplerOptions& o) { o.grammar = "root ::= ("; });
    refused("grammar", [](SamplerOptions& o) { o.grammar = R"(other ::= "x")"; });
}

} // namespace
} // namespace spool
