#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace {

struct Flush {
    ino_t inode = 0;
    bool out_there = false; ///< it was a folder, and a file "out" stood in it
};

std::vector<Flush>& flushes() {
    static std::vector<Flush> list;
    return list;
}

} // namespace

/// In place of libc's, so that a test can see what reached the disk, and in which order.
extern "C" int fsync(int fd) {
    struct stat status{};
    ::fstat(fd, &status);
    flushes().push_back({status.st_ino, ::faccessat(fd, "out", F_OK, 0) == 0});
    return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace spool {
namespace {

using test::expect_error;
using test::TemporaryFolder;

size_t files_in(const std::filesystem::path& folder) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(AtomicFile, nothing_stands_under_the_name_before_commit) {
    const TemporaryFolder folder;
    const auto path = folder / "out";
    AtomicFile file(path);
    file.write("half");
    EXPECT_FALSE(std::filesystem::exists(path));
    file.write(" and half");
    EXPECT_EQ(file.size(), 13U);
    file.commit();
    EXPECT_EQ(read_text(path), "half and half");
    EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFile, without_a_commit_the_old_file_stays_and_no_partial_one_is_left) {
    const TemporaryFolder folder;
    const auto path = folder / "out";
    write_text(path, "old");
    {
        AtomicFile file(path);
        file.write("new");
    }
    EXPECT_EQ(read_text(path), "old");
    EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFile, a_commit_replaces_the_old_file_at_once) {
    const TemporaryFolder folder;
    const auto path = folder / "out";
    write_text(path, "old and longer");
    const MappedFile reader(path); // still sees what it opened
    write_text(path, "new");
    EXPECT_EQ(read_text(path), "new");
    EXPECT_EQ(reader.bytes().size(), 14U);
    EXPECT_EQ(std::to_integer<char>(reader.bytes()[0]), 'o');
}

TEST(AtomicFile, a_commit_flushes_the_file_before_and_the_folder_after_the_rename) {
    const TemporaryFolder folder;
    const auto inode = [](const std::filesystem::path& path) {
        struct stat status{};
        EXPECT_EQ(::stat(path.c_str(), &status), 0);
        return status.st_ino;
    };
    flushes().clear();
    write_text(folder / "out", "text");
    ASSERT_EQ(flushes().size(), 2U);
    EXPECT_EQ(flushes()[0].inode, inode(folder / "out"));
    EXPECT_EQ(flushes()[1].inode, inode(folder.path()));
    EXPECT_TRUE(flushes()[1].out_there);
}

TEST(AtomicFile, a_name_without_a_folder_is_in_the_current_one) {
    const TemporaryFolder folder;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    write_text("out", "text");
    std::filesystem::current_path(before);
    EXPECT_EQ(read_text(folder / "out"), "text");
}

TEST(AtomicFile, a_header_can_be_filled_in_at_the_end) {
    const TemporaryFolder folder;
    const auto path = folder / "out";
    AtomicFile file(path);
    file.write("????body");
    file.overwrite(0, bytes_of("HEAD"));
    expect_error(ErrorCode::internal, {path.string()}, [&] { file.overwrite(6, bytes_of("past")); });
    file.commit();
    EXPECT_EQ(read_text(path), "HEADbody");
}

TEST(AtomicFile, errors_name_the_final_path) {
    const TemporaryFolder folder;
    const auto path = folder / "absent/out";
    expect_error(ErrorCode::not_found, {path.string()}, [&] { const AtomicFile file(path); });
}

TEST(AtomicFile, a_folder_under_the_name_is_an_error_and_leaves_nothing_behind) {
    const TemporaryFolder folder;
    const auto path = folder / "taken";
    std::filesystem::create_directories(path / "inside");
    expect_error(ErrorCode::io, {path.string(), "rename"}, [&] { write_text(path, "text"); });
    EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(MappedFile, shows_the_bytes_of_the_file) {
    const TemporaryFolder folder;
    const auto path = folder / "in";
    write_text(path, std::string_view("a\0b", 3));
    MappedFile file(path);
    EXPECT_EQ(file.path(), path);
    ASSERT_EQ(file.bytes().size(), 3U);
    EXPECT_EQ(std::to_integer<char>(file.bytes()[2]), 'b');

    const std::byte* address = file.bytes().data();
    const MappedFile moved = std::move(file);
    EXPECT_EQ(moved.bytes().data(), address);
}

TEST(MappedFile, an_empty_file_is_an_empty_span) {
    const TemporaryFolder folder;
    write_text(folder / "empty", "");
    EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(MappedFile, what_is_missing_or_no_file_is_named) {
    const TemporaryFolder folder;
    const auto path = folder / "absent";
    expect_error(ErrorCode::not_found, {path.string()}, [&] { const MappedFile file(path); });
    expect_error(ErrorCode::not_found, {path.string()}, [&] { read_text(path); });
    expect_error(ErrorCode::io, {folder.path().string(), "regular"},
                 [&] { const MappedFile file(folder.path()); });
}

} // namespace
} // namespace spool
