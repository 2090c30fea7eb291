#include <set>

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/hash.h"
#include "corpus/compress.h"
#include "corpus/prepare.h"
#include "corpus/split.h"
#include "corpus/toy_encoder.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using test::ToyEncoder;

std::string record(const std::string& prompt, const std::string& think, const std::string& answer = "So.") {
    return Json({{"prompt", prompt}, {"think", think}, {"answer", answer}}).dump() + "\n";
}

class PrepareTest : public ::testing::Test {
  protected:
    PrepareTest() {
        options_.destination = (folder_ / "shards");
        options_.base = {"llama", "toy", std::string(64, '0')};
        options_.vocab_size = ToyEncoder::vocab_size;
        options_.min_tokens = 0;
    }

    PrepareReport run(const std::string& text) {
        write_text((folder_ / "in.jsonl"), text);
        std::filesystem::remove_all(options_.destination);
        return prepare({(folder_ / "in.jsonl")}, options_, encoder_);
    }

    /// The traces of a split as text.
    std::vector<std::string> texts(const std::string& split) const {
        std::vector<std::string> result;
        const TokenShards shards(options_.destination, split);
        result.reserve(shards.size());
        for (size_t i = 0; i < shards.size(); ++i) {
            result.push_back(encoder_.text(shards.trace(i).tokens));
        }
        return result;
    }

    TemporaryFolder folder_;
    ToyEncoder encoder_;
    PrepareOptions options_;
};

TEST_F(PrepareTest, a_trace_is_prompt_thinking_answer_and_the_end_token) {
    options_.val_share = 0;
    run(record("Why?", "Hm."));
    const TokenShards shards(options_.destination, "train");
    ASSERT_EQ(shards.size(), 1U);
    const TraceView trace = shards.trace(0);
    const auto prompt = static_cast<size_t>(trace.prompt);
    EXPECT_EQ(encoder_.text(trace.tokens.first(prompt)), "user: Why?\nassistant:\n");
    EXPECT_EQ(encoder_.text(trace.tokens.subspan(prompt)), "<think>\nHm.\n</think>\n\nSo.<|end|>");
    EXPECT_EQ(trace.tokens.back(), ToyEncoder::end_token);
    EXPECT_TRUE(trace.answers.empty());
}

TEST_F(PrepareTest, a_template_that_opens_the_thinking_is_not_given_the_tag_twice) {
    options_.val_share = 0;
    encoder_.opens_think = true;
    run(record("Why?", "Hm.") + record("Who?", "", "Me."));
    EXPECT_EQ(texts("train"),
              (std::vector<std::string>{"user: Why?\nassistant:\n<think>\nHm.\n</think>\n\nSo.<|end|>",
                                        "user: Who?\nassistant:\n<think>\n\n</think>\n\nMe.<|end|>"}));
}

TEST_F(PrepareTest, bad_records_and_duplicates_are_counted_by_reason_with_the_first_example) {
    encoder_.refuses_system = true;
    options_.min_tokens = 12;
    options_.max_tokens = 40;
    const auto report = run(record("Why?", "one two three four five") + "{\"prompt\": \n" +
                            record("Why?", "one two three four five") + "[]\nnull\n" +
                            record("Why <|end|>?", "one two three four five") +
                            record("Why?", "one two <think> three four five") +
                            R"({"system":"S","prompt":"Why?","answer":"one two three four five"})" + "\n" +
                            record("Why?", "", "x") + record("Long?", std::string(100, '7')) +
                            record("Why?", "<think>Hm") + record("How?", "one two three four <|end|> five"));
    std::map<std::string, uint64_t> counts;
    for (const auto& [reason, entry] : report.rejected) {
        counts[reason] = entry.count;
        EXPECT_EQ(entry.example.find((folder_ / "in.jsonl").string() + ":"), 0U) << entry.example;
        EXPECT_EQ(report.index["rejected"][reason], entry.count);
    }
    EXPECT_EQ(counts, (std::map<std::string, uint64_t>{{"not_json", 1},
                                                       {"duplicate", 1},
                                                       {"not_an_object", 2},
                                                       {"control_tokens", 1},
                                                       {"stray_tags", 1},
                                                       {"template_refuses", 1},
                                                       {"too_short", 1},
                                                       {"too_long", 1}}));
    EXPECT_NE(report.rejected.at("duplicate").example.find("in.jsonl:3"), std::string::npos);
    EXPECT_EQ(texts("train").size() + texts("val").size(), 3U);
}

TEST_F(PrepareTest, no_validation_prompt_trains_whatever_the_order_and_the_replies) {
    std::string text;
    std::string reversed;
    for (int i = 0; i < 400; ++i) {
        const std::string prompt = "Question " + std::to_string(i % 200) + (i < 200 ? "?" : "?  ");
        const std::string line = record(prompt, "Thought " + std::to_string(i));
        text += line;
        reversed.insert(0, line);
    }
    options_.val_share = 0.2;
    run(text);
    const auto val = texts("val");
    EXPECT_GT(val.size(), 40U);
    EXPECT_LT(val.size(), 120U);
    const auto prompts = [&](const std::string& split) {
        std::set<std::string> result;
        for (const std::string& trace : texts(split)) {
            result.insert(trace.substr(0, trace.find('?')));
        }
        return result;
    };
    const auto val_prompts = prompts("val");
    const auto train_prompts = prompts("train");
    EXPECT_EQ(val_prompts.size() * 2, val.size()) << "both replies of a prompt are on one side";
    EXPECT_EQ(val_prompts.size() + train_prompts.size(), 200U) << "and no prompt on both";
    run(reversed);
    EXPECT_EQ(prompts("val"), val_prompts);
    options_.val_share = 0.3;
    run(text);
    EXPECT_TRUE(std::ranges::includes(prompts("val"), val_prompts)) << "a larger share keeps the smaller one";
}

TEST_F(PrepareTest, the_index_says_what_made_it_and_the_run_can_be_repeated) {
    std::string text;
    for (int i = 0; i < 30; ++i) {
        text += record("Question " + std::to_string(i), "Thought.");
    }
    options_.shard_tokens = 64;
    options_.val_share = 0.5;
    const auto report = run(text);
    const Json index = Json::parse(read_text(options_.destination / "index.json"));
    EXPECT_EQ(index, report.index);
    EXPECT_EQ(index["version"], 1);
    EXPECT_EQ(index["base"]["name"], "toy");
    EXPECT_EQ(index["settings"]["sources"][0]["sha256"], sha256_file((folder_ / "in.jsonl")));
    EXPECT_EQ(index["settings"]["val_share"], 0.5);
    EXPECT_EQ(index["settings"]["prompt"], "user: {prompt}\nassistant:\n");
    EXPECT_GT(index["splits"]["train"]["shards"].size(), 2U);
    EXPECT_EQ(index["splits"]["train"]["traces"].get<int>() + index["splits"]["val"]["traces"].get<int>(),
              30);
    EXPECT_EQ(run(text).index, index) << "hashes of the shards included";

    options_.threads = 4;
    std::string texts_before;
    for (const std::string& trace : texts("train")) {
        texts_before += trace;
    }
    EXPECT_EQ(run(text).index["splits"]["train"]["traces"], index["splits"]["train"]["traces"]);
    std::string texts_after;
    for (const std::string& trace : texts("train")) {
        texts_after += trace;
    }
    EXPECT_EQ(texts_after, texts_before) << "whatever the number of threads";

    options_.limit = 7;
    const Json limited = run(text).index["splits"];
    EXPECT_EQ(limited["train"]["traces"].get<int>() + limited["val"]["traces"].get<int>(), 7);
}

TEST_F(PrepareTest, several_sources_compressed_or_not_are_one_corpus) {
    write_text((folder_ / "a"), record("A?", "a"));
    write_text((folder_ / "b"), test::gzip(record("B?", "b") + record("A?", "a")));
    write_text((folder_ / "c"), test::zstd(record("C?", "c")));
    const auto report = prepare({(folder_ / "a"), (folder_ / "b"), (folder_ / "c")}, options_, encoder_);
    EXPECT_EQ(texts("train").size() + texts("val").size(), 3U);
    EXPECT_EQ(report.rejected.at("duplicate").count, 1U);
}

TEST_F(PrepareTest, nothing_is_left_behind_by_a_run_that_fails_or_is_stopped) {
    expect_error(ErrorCode::bad_file, {"no trace is left", "1 x not_json", "in.jsonl:1", "1 x no_reply"},
                 [&] { run("nonsense\n{\"prompt\":\"Why?\"}\n"); });
    write_text((folder_ / "cut.gz"), test::gzip(record("A?", "a")).substr(0, 40));
    expect_error(ErrorCode::bad_file, {"cut.gz", "truncated"},
                 [&] { prepare({(folder_ / "cut.gz")}, options_, encoder_); });
    expect_error(ErrorCode::not_found, {"missing.jsonl"},
                 [&] { prepare({(folder_ / "missing.jsonl")}, options_, encoder_); });
    options_.shard_tokens = 32;
    options_.on_progress = [calls = 0](uint64_t, uint64_t) mutable { return ++calls < 10; };
    std::string text;
    for (int i = 0; i < 30; ++i) {
        text += record("Question " + std::to_string(i), "Thought.");
    }
    expect_error(ErrorCode::interrupted, {"shards", "as it was before"}, [&] { run(text); });
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
        EXPECT_FALSE(entry.is_directory()) << entry.path();
    }
}

TEST_F(PrepareTest, settings_that_cannot_be_met_are_refused) {
    const auto refuses = [&](std::string_view word) {
        expect_error(ErrorCode::invalid_argument, {word}, [&] { run(record("A?", "a")); });
        options_.val_share = 0.02;
        options_.shard_tokens = 100;
        options_.max_tokens = 0;
    };
    options_.val_share = 1;
    refuses("--val-share");
    options_.val_share = -0.1;
    refuses("--val-share");
    options_.shard_tokens = 0;
    refuses("--shard-tokens");
    options_.shard_tokens = largest_shard + 1;
    refuses("--shard-tokens");
    options_.min_tokens = 10;
    options_.max_tokens = 9;
    refuses("--max-tokens");
}

#ifdef SPOOL_PARQUET
TEST_F(PrepareTest, parquet_is_read_row_by_row) {
    options_.val_share = 0;
    const auto report = prepare({test::fixture("corpus/data/traces.parquet")}, options_, encoder_);
    const auto traces = texts("train");
    ASSERT_EQ(traces.size(), 5U);
    EXPECT_EQ(traces[3], "user: What is 3 + 3?\nassistant:\n<think>\nTwice 3.\n</think>\n\n6<|end|>");
    EXPECT_EQ(report.index["rejected"], (Json{{"incorrect", 5}, {"no_reply", 1}}));
    EXPECT_NE(report.rejected.at("no_reply").example.find("traces.parquet: row 6"), std::string::npos);
}

TEST_F(PrepareTest, a_damaged_parquet_file_is_an_error_that_names_it) {
    const std::string whole = read_text(test::fixture("corpus/data/traces.parquet"));
    std::string damaged = whole;
    damaged.replace(whole.size() / 8, whole.size() / 4, whole.size() / 4, '\xA5');
    for (const std::string& bytes : {whole.substr(0, whole.size() / 2), std::string("PAR1"), damaged}) {
        write_text((folder_ / "a.parquet"), bytes);
        expect_error(ErrorCode::bad_file, {"a.parquet"},
                     [&] { prepare({(folder_ / "a.parquet")}, options_, encoder_); });
    }
}
#else
TEST_F(PrepareTest, a_parquet_file_is_known_by_its_first_bytes_and_the_build_that_reads_it_named) {
    write_text((folder_ / "a.jsonl"), "PAR1....");
    expect_error(ErrorCode::unsupported, {"a.jsonl", "SPOOL_PARQUET"},
                 [&] { prepare({(folder_ / "a.jsonl")}, options_, encoder_); });
}
#endif

TEST(Split, the_position_is_even_and_blind_to_case_and_space) {
    EXPECT_EQ(split_position("What is  2+2?\n"), split_position(" what IS 2+2?"));
    EXPECT_NE(split_position("What is 2+2?"), split_position("What is 2+3?"));
    int below = 0;
    for (int i = 0; i < 4000; ++i) {
        below += split_position(std::to_string(i)) < 0.25 ? 1 : 0;
    }
    EXPECT_NEAR(below, 1000, 100);
}

} // namespace
} // namespace spool
