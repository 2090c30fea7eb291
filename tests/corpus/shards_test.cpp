#include <functional>

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/staged_folder.h"
#include "corpus/shard_writer.h"
#include "corpus/shards.h"
#include "support/corruption.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

using test::expect_error;
using test::TemporaryFolder;

constexpr const char* vocabulary = "ab54cc";

/// What a shard holds, to be spoiled by a test.
struct Content {
    std::vector<Token> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    std::vector<int64_t> starts = {0, 4, 9};
    std::vector<int32_t> prompts = {2, 1};
    std::vector<int32_t> answers = {1, 3, 2, 2};
    std::vector<int64_t> answers_shape = {1, 4};
    std::string metadata_version = "1";
};

template <typename T>
std::span<const std::byte> bytes(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
}

void write_shard(const std::filesystem::path& path, const Content& content) {
    write_safetensors(
        path,
        {{"starts", DType::i64, {static_cast<int64_t>(content.starts.size())}, bytes(content.starts)},
         {"tokens", DType::i32, {static_cast<int64_t>(content.tokens.size())}, bytes(content.tokens)},
         {"prompts", DType::i32, {static_cast<int64_t>(content.prompts.size())}, bytes(content.prompts)},
         {"answers", DType::i32, content.answers_shape, bytes(content.answers)}},
        {{"vocab_sha256", vocabulary}, {"version", content.metadata_version}});
}

Json index_of(uint64_t traces, uint64_t tokens, const std::string& file = "train-00000.safetensors") {
    return {{"version", 1},
            {"base",
             {{"architecture", "llama"}, {"name", "n"}, {"vocab_sha256", vocabulary}, {"vocab_size", 10}}},
            {"splits",
             {{"train",
               {{"traces", traces},
                {"tokens", tokens},
                {"shards", {{{"file", file}, {"traces", traces}, {"tokens", tokens}, {"sha256", ""}}}}}},
              {"val", {{"traces", 0}, {"tokens", 0}, {"shards", Json::array()}}}}}};
}

void write_index(const TemporaryFolder& folder, const Json& index) {
    write_text((folder / "index.json"), index.dump());
}

TEST(TokenShards, what_is_written_is_read_back_over_several_files) {
    const TemporaryFolder folder;
    ShardWriter writer(folder.path(), "train", vocabulary, 10);
    std::vector<std::vector<Token>> traces;
    for (Token i = 1; i <= 9; ++i) { // of 1 to 9 tokens
        traces.emplace_back(static_cast<size_t>(i), i);
        const Answer first{i - 1, 1, i / 2};
        writer.add(traces.back(), i / 3, std::span(&first, i % 2 == 0 ? 1 : 0));
    }
    traces.emplace_back(25, 3); // longer than a shard by itself
    writer.add(traces.back(), 5, std::vector<Answer>{{7, 2, 3}, {20, 1, 11}});
    EXPECT_EQ(writer.traces(), 10U);
    Json index = index_of(0, 0);
    index["splits"]["train"] = writer.finish();
    write_index(folder, index);

    const TokenShards shards(folder.path(), "train");
    EXPECT_EQ(shards.size(), 10U);
    EXPECT_EQ(shards.tokens(), 70U);
    EXPECT_EQ(shards.vocab_size(), 10);
    EXPECT_EQ(shards.vocab_sha256(), vocabulary);
    for (size_t i = 0; i < traces.size(); ++i) {
        const TraceView view = shards.trace(i);
        EXPECT_EQ(std::vector<Token>(view.tokens.begin(), view.tokens.end()), traces[i]);
        if (i < 9) {
            EXPECT_EQ(view.prompt, static_cast<int32_t>(i + 1) / 3);
            ASSERT_EQ(view.answers.size(), i % 2) << i;
        }
    }
    ASSERT_EQ(shards.trace(9).answers.size(), 2U);
    EXPECT_EQ(shards.trace(9).answers[1].offset, 20);
    EXPECT_EQ(shards.trace(9).answers[1].length, 1);
    EXPECT_EQ(shards.trace(9).answers[1].distance, 11);
    const Json& files = index["splits"]["train"]["shards"];
    EXPECT_GT(files.size(), 4U);
    for (const Json& file : files) {
        EXPECT_TRUE(file["tokens"] <= 10 || file["traces"] == 1) << file;
        EXPECT_EQ(sha256_file(folder.path() / file["file"].get<std::string>()),
                  file["sha256"].get<std::string>());
    }
    EXPECT_EQ(TokenShards(folder.path(), "val").size(), 0U);
    expect_error(ErrorCode::invalid_argument, {"10"}, [&] { static_cast<void>(shards.trace(10)); });
    expect_error(ErrorCode::bad_file, {"index.json", "test"},
                 [&] { const TokenShards none(folder.path(), "test"); });
}

TEST(TokenShards, a_shard_that_contradicts_itself_is_refused_by_file_and_field) {
    struct Case {
        std::function<void(Content&)> spoil;
        const char* word;
    };
    const std::vector<Case> cases = {
        {[](Content& c) { c.starts = {0, 5, 4}; }, "'starts'"},
        {[](Content& c) { c.starts = {0, 0, 9}; }, "'starts'"},
        {[](Content& c) { c.starts = {1, 4, 9}; }, "'starts'"},
        {[](Content& c) { c.starts = {0, 4, 8}; }, "'starts'"},
        {[](Content& c) { c.starts = {0, int64_t{1} << 60, 9}; }, "'starts'"},
        {[](Content& c) { c.starts = {0, -4, 9}; }, "'starts'"},
        {[](Content& c) { c.starts = {0, 9}; }, "'starts'"},
        {[](Content& c) { c.starts = {}; }, "'starts'"},
        {[](Content& c) { c.prompts = {5, 1}; }, "'prompts'"},
        {[](Content& c) { c.prompts = {2, -1}; }, "'prompts'"},
        {[](Content& c) { c.answers = {2, 3, 2, 2}; }, "'answers'"},
        {[](Content& c) { c.answers = {-1, 3, 2, 2}; }, "'answers'"},
        {[](Content& c) { c.answers = {1, 4, 2, 2}; }, "'answers'"},
        {[](Content& c) { c.answers = {1, 3, 0, 2}; }, "'answers'"},
        {[](Content& c) { c.answers = {1, 3, 2147483647, 2}; }, "'answers'"},
        {[](Content& c) { c.answers = {1, 3, 2, 4}; }, "'answers'"},
        {[](Content& c) { c.answers_shape = {4, 1}; }, "'answers'"},
        {[](Content& c) { c.answers_shape = {4}; }, "'answers'"},
        {[](Content& c) {
             c.answers = {1, 3, 1, 0, 0, 3, 1, 0};
             c.answers_shape = {2, 4};
         },
         "order"},
        {[](Content& c) { c.metadata_version = "2"; }, "'version'"},
        {[](Content& c) { c.tokens.pop_back(); }, "'starts'"},
    };
    const TemporaryFolder folder;
    write_index(folder, index_of(2, 9));
    write_shard((folder / "train-00000.safetensors"), {});
    EXPECT_EQ(TokenShards(folder.path(), "train").size(), 2U) << "the unspoiled one opens";
    for (const Case& c : cases) {
        Content content;
        c.spoil(content);
        write_shard((folder / "train-00000.safetensors"), content);
        expect_error(ErrorCode::bad_file, {"train-00000.safetensors", c.word},
                     [&] { const TokenShards shards(folder.path(), "train"); });
    }
}

TEST(TokenShards, an_id_outside_the_vocabulary_is_refused_when_the_trace_is_read) {
    const TemporaryFolder folder;
    write_index(folder, index_of(2, 9));
    for (const Token bad : {-1, 10}) {
        Content content;
        content.tokens[6] = bad;
        write_shard((folder / "train-00000.safetensors"), content);
        const TokenShards shards(folder.path(), "train");
        EXPECT_EQ(shards.trace(0).tokens.size(), 4U);
        expect_error(ErrorCode::bad_file, {"train-00000.safetensors", "'tokens'", std::to_string(bad)},
                     [&] { static_cast<void>(shards.trace(1)); });
    }
}

TEST(TokenShards, an_index_that_does_not_fit_is_refused) {
    const TemporaryFolder folder;
    write_shard((folder / "train-00000.safetensors"), {});
    const auto refuses = [&](const Json& index, std::initializer_list<std::string_view> words,
                             ErrorCode code = ErrorCode::bad_file) {
        write_index(folder, index);
        expect_error(code, words, [&] { const TokenShards shards(folder.path(), "train"); });
    };
    refuses(index_of(3, 9), {"train-00000.safetensors", "2 traces", "3"});
    refuses(index_of(2, 8), {"train-00000.safetensors", "9 tokens", "8"});
    for (const char* file : {"../train-00000.safetensors", "/etc/passwd", "..", ""}) {
        refuses(index_of(2, 9, file), {"index.json", "'file'"});
    }
    refuses(index_of(2, 9, "train-00001.safetensors"), {"train-00001.safetensors"}, ErrorCode::not_found);
    Json index = index_of(2, 9);
    index["version"] = 2;
    refuses(index, {"index.json", "'version'", "2"}, ErrorCode::unsupported);
    index = index_of(2, 9);
    index["base"]["vocab_sha256"] = "b";
    refuses(index, {"train-00000.safetensors", "vocab_sha256"});
    index = index_of(2, 9);
    index["splits"]["train"]["tokens"] = 10;
    refuses(index, {"index.json", "10 tokens"});
    index["splits"]["train"]["tokens"] = -1;
    refuses(index, {"index.json", "'tokens'"});
    index["splits"]["train"]["shards"] = "none";
    refuses(index, {"index.json", "'shards'"});
    index["base"]["vocab_size"] = 0;
    refuses(index, {"index.json", "'vocab_size'"});
    std::filesystem::remove((folder / "index.json"));
    expect_error(ErrorCode::not_found, {"index.json", "spool prepare"},
                 [&] { const TokenShards shards(folder.path(), "train"); });
}

TEST(TokenShards, no_damaged_byte_and_no_cut_leads_outside_the_file) {
    const TemporaryFolder folder;
    write_shard((folder / "train-00000.safetensors"), {});
    std::filesystem::create_directories((folder / "copy"));
    write_text((folder / "copy") / "index.json", index_of(2, 9).dump());
    test::Corruption corruption((folder / "train-00000.safetensors"),
                                (folder / "copy") / "train-00000.safetensors",
                                [&](const std::filesystem::path& path) {
                                    const TokenShards shards(path.parent_path(), "train");
                                    for (size_t i = 0; i < shards.size(); ++i) {
                                        static_cast<void>(shards.trace(i));
                                    }
                                });
    const auto counts = corruption.run(10000);
    EXPECT_EQ(counts.truncated_refused, counts.truncated);
    EXPECT_GT(counts.changed_refused, counts.changed / 2);
}

TEST(StagedFolder, appears_complete_or_not_at_all) {
    const TemporaryFolder folder;
    const auto target = (folder / "out");
    {
        const StagedFolder staged(target, "index.json", false);
        write_text(staged.path() / "part", "x");
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    {
        StagedFolder staged(target.string() + "/", "index.json", false);
        write_text(staged.path() / "index.json", "1");
        staged.commit();
    }
    EXPECT_EQ(read_text(target / "index.json"), "1");
    expect_error(ErrorCode::invalid_argument, {target.string(), "--overwrite"},
                 [&] { const StagedFolder staged(target, "index.json", false); });
    {
        StagedFolder staged(target, "index.json", true);
        write_text(staged.path() / "index.json", "2");
        EXPECT_EQ(read_text(target / "index.json"), "1") << "untouched until the commit";
        staged.commit();
    }
    EXPECT_EQ(read_text(target / "index.json"), "2");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1)
        << "nothing else is left";
    std::filesystem::rename(target / "index.json", target / "diary.txt");
    expect_error(ErrorCode::invalid_argument, {target.string(), "other files"},
                 [&] { const StagedFolder staged(target, "index.json", true); });
}

} // namespace
} // namespace spool
