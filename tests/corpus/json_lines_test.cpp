#include <gtest/gtest.h>

#include "corpus/compress.h"
#include "corpus/json_lines.h"
#include "corpus/records.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

using test::expect_error;
using test::gzip;
using test::TemporaryFolder;
using test::zstd;

std::vector<Json> read_all(const std::filesystem::path& path) {
    std::vector<Json> values;
    JsonLines lines(path);
    while (auto value = lines.next()) {
        values.push_back(std::move(*value));
    }
    return values;
}

/// Enough that a compressed stream has several blocks and a line spans the reader's buffer.
std::string many_lines() {
    std::string text;
    for (int i = 0; i < 3000; ++i) {
        text += Json({{"i", i},
                      {"text", std::string(static_cast<size_t>(i % 300), static_cast<char>('a' + i % 26))}})
                    .dump() +
                "\n";
    }
    return text + Json({{"i", 3000}, {"text", std::string(300000, 'x')}}).dump() + "\n";
}

TEST(JsonLines, plain_gzip_zstd_and_joined_streams_hold_the_same_values) {
    const TemporaryFolder folder;
    const std::string text = many_lines();
    const size_t half = text.find('\n', text.size() / 3) + 1;
    write_text((folder / "plain"), text);
    write_text((folder / "gz"), gzip(text));
    write_text((folder / "zst"), zstd(text));
    write_text((folder / "gz2"), gzip(text.substr(0, half)) + gzip(text.substr(half)));
    write_text((folder / "zst2"), zstd(text.substr(0, half)) + zstd(text.substr(half)));
    const auto values = read_all((folder / "plain"));
    ASSERT_EQ(values.size(), 3001U);
    EXPECT_EQ(values[17]["i"], 17);
    for (const char* name : {"gz", "zst", "gz2", "zst2"}) {
        EXPECT_EQ(read_all((folder / name)), values) << name << ": content decides, not the name";
    }
}

TEST(JsonLines, lines_are_counted_and_blank_ones_skipped) {
    const TemporaryFolder folder;
    write_text((folder / "a.jsonl"), "\n{\"a\":1}\r\n \t\n\n[2]");
    JsonLines lines((folder / "a.jsonl"));
    EXPECT_EQ(lines.next(), Json({{"a", 1}}));
    EXPECT_EQ(lines.line(), 2U);
    EXPECT_EQ(lines.next(), Json::array({2})) << "the last line needs no end";
    EXPECT_EQ(lines.line(), 5U);
    EXPECT_EQ(lines.next(), std::nullopt);
    EXPECT_EQ(lines.position(), 17U);
}

TEST(JsonLines, a_truncated_or_damaged_stream_is_an_error_that_names_the_file) {
    const TemporaryFolder folder;
    const std::string text = many_lines();
    for (const bool is_zstd : {false, true}) {
        const auto path = folder / (is_zstd ? "a.zst" : "a.gz");
        const std::string whole = is_zstd ? zstd(text) : gzip(text);
        const char* kind = is_zstd ? "zstd" : "gzip";
        for (const size_t size : {whole.size() / 2, whole.size() - 1}) {
            write_text(path, whole.substr(0, size));
            expect_error(ErrorCode::bad_file, {path.string(), kind, "truncated", "after line"},
                         [&] { read_all(path); });
        }
        std::string damaged = whole;
        damaged[damaged.size() / 2] = static_cast<char>(~damaged[damaged.size() / 2]);
        write_text(path, damaged);
        expect_error(ErrorCode::bad_file, {path.string()}, [&] { read_all(path); });
    }
}

TEST(JsonLines, a_line_that_is_not_json_names_file_and_line) {
    const TemporaryFolder folder;
    write_text((folder / "a.jsonl"), "{}\n{\"a\":\n");
    expect_error(ErrorCode::bad_file, {"a.jsonl:2", "not JSON"}, [&] { read_all((folder / "a.jsonl")); });
    expect_error(ErrorCode::not_found, {"missing.jsonl"}, [&] { read_all((folder / "missing.jsonl")); });
    expect_error(ErrorCode::io, {folder.path().string()}, [&] { read_all(folder.path()); });
}

TEST(Records, every_field_is_checked) {
    const TemporaryFolder folder;
    const auto path = (folder / "r.jsonl");
    write_text(path, R"({"prompt":[1],"distant":[],"recent":[2,3],"target":[4],"note":"kept"})");
    const auto records = read_records(path, 5);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].id, "1");
    EXPECT_EQ(records[0].recent, (std::vector<Token>{2, 3}));
    EXPECT_EQ(records[0].source["note"], "kept");
    expect_error(ErrorCode::bad_file, {"r.jsonl:1", "target", "4"}, [&] { read_records(path, 4); });
    write_text(path, R"({"prompt":[1],"recent":[2],"target":[4]})");
    expect_error(ErrorCode::bad_file, {"r.jsonl:1", "distant"}, [&] { read_records(path, 5); });
    write_text(path, R"({"prompt":[],"distant":[],"recent":[],"target":[4]})");
    expect_error(ErrorCode::bad_file, {"r.jsonl:1", "recent"}, [&] { read_records(path, 5); });
    write_text(path, "\n");
    expect_error(ErrorCode::bad_file, {"r.jsonl", "no records"}, [&] { read_records(path, 5); });
}

} // namespace
} // namespace spool
