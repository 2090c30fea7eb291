// What the cache keeps, how long, how much, and what it does with files that are damaged.
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/file.h"
#include "support/temporary_folder.h"
#include "web/web_cache.h"

namespace spool::test {

namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

CachedPage page(const std::string& text, int64_t age = 0) {
    return {.url = "https://a.example/end",
            .content_type = "text/html",
            .text = text,
            .fetched = static_cast<int64_t>(std::time(nullptr)) - age};
}

size_t files_in(const fs::path& folder) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

constexpr size_t large = 1'000'000;

} // namespace

TEST(WebCache, GivesBackWhatWasStored) {
    const TemporaryFolder folder;
    WebCache cache(folder / "new", hours(24), large);
    EXPECT_FALSE(cache.find("https://a.example/").has_value());
    cache.store("https://a.example/", page("Größe\n\"quoted\""));
    const WebCache other(folder / "new", hours(24), large);
    const auto found = other.find("https://a.example/");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->text, "Größe\n\"quoted\"");
    EXPECT_EQ(found->url, "https://a.example/end");
    EXPECT_EQ(found->content_type, "text/html");
    EXPECT_FALSE(other.find("https://a.example/other").has_value());
}

TEST(WebCache, ForgetsWhatIsOldOrFromTheFuture) {
    const TemporaryFolder folder;
    WebCache cache(folder.path(), hours(1), large);
    cache.store("https://a.example/", page("text", 3'500));
    EXPECT_TRUE(cache.find("https://a.example/").has_value());
    cache.store("https://a.example/", page("text", 3'700));
    EXPECT_FALSE(cache.find("https://a.example/").has_value());
    cache.store("https://a.example/", page("text", -3'700));
    EXPECT_FALSE(cache.find("https://a.example/").has_value());
}

TEST(WebCache, DamagedFilesCountAsAbsent) {
    const TemporaryFolder folder;
    WebCache cache(folder.path(), hours(1), large);
    cache.store("https://a.example/", page("text"));
    const fs::path path = fs::directory_iterator(folder.path())->path();
    const std::string whole = read_text(path);
    for (size_t size = 0; size < whole.size() - 1; size += 7) {
        std::ofstream(path, std::ios::trunc) << whole.substr(0, size);
        EXPECT_FALSE(cache.find("https://a.example/").has_value()) << size;
    }
    std::ofstream(path, std::ios::trunc) << R"({"asked": "https://a.example/", "fetched": "yesterday"})";
    EXPECT_FALSE(cache.find("https://a.example/").has_value());
    std::ofstream(path, std::ios::trunc) << whole;
    EXPECT_TRUE(cache.find("https://a.example/").has_value());
}

TEST(WebCache, RemovesTheOldestBeyondItsSize) {
    const TemporaryFolder folder;
    WebCache cache(folder.path(), hours(1), 3'500);
    for (int i = 0; i < 8; ++i) {
        const std::string url = "https://a.example/" + std::to_string(i);
        cache.store(url, page(std::string(800, 'x')));
        EXPECT_TRUE(cache.find(url).has_value()) << i;
    }
    EXPECT_FALSE(cache.find("https://a.example/0").has_value());
    EXPECT_LE(files_in(folder.path()), 4);
}

TEST(WebCache, WithoutAFolderKeepsNothing) {
    WebCache cache({}, hours(1), large);
    cache.store("https://a.example/", page("text"));
    EXPECT_FALSE(cache.find("https://a.example/").has_value());
}

TEST(WebCache, AFolderThatCannotBeWrittenIsNoError) {
    const TemporaryFolder folder;
    std::ofstream(folder / "file") << "in the way";
    WebCache cache(folder / "file", hours(1), large);
    cache.store("https://a.example/", page("text"));
    EXPECT_FALSE(cache.find("https://a.example/").has_value());
    EXPECT_GT(cache.block("a.example:443"), 0);
    EXPECT_TRUE(cache.blocked_until("a.example:443").has_value()) << "this process knows";
}

TEST(WebCache, BlocksLastTwiceAsLongEachTimeAndForAllProcesses) {
    const TemporaryFolder folder;
    const auto now = static_cast<int64_t>(std::time(nullptr));
    WebCache cache(folder.path(), hours(1), large);
    EXPECT_FALSE(cache.blocked_until("a.example:443").has_value());
    int64_t expected = int64_t{15} * 60;
    for (int i = 0; i < 7; ++i, expected = std::min<int64_t>(2 * expected, int64_t{4} * 3600)) {
        WebCache process(folder.path(), hours(1), large);
        EXPECT_NEAR(static_cast<double>(process.block("a.example:443") - now), static_cast<double>(expected),
                    5);
    }
    EXPECT_TRUE(cache.blocked_until("a.example:443").has_value());
    EXPECT_FALSE(cache.blocked_until("b.example:443").has_value());
}

} // namespace spool::test
