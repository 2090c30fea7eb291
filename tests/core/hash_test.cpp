#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/hash.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

std::string sha256_of(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

TEST(Hash, sha256_matches_the_vectors_of_fips_180) {
    EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Hash, a_files_hash_is_that_of_its_bytes) {
    const test::TemporaryFolder folder;
    write_text(folder / "abc", "abc");
    EXPECT_EQ(sha256_file(folder / "abc"), sha256_of("abc"));
    write_text(folder / "empty", "");
    EXPECT_EQ(sha256_file(folder / "empty"), sha256_of(""));
    test::expect_error(ErrorCode::not_found, {"absent"}, [&] { sha256_file(folder / "absent"); });
}

TEST(Hash, a_blobs_name_is_what_git_hash_object_prints) {
    const test::TemporaryFolder folder;
    write_text(folder / "empty", "");
    EXPECT_EQ(git_blob_sha1_file(folder / "empty"), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    write_text(folder / "text", "test content\n");
    EXPECT_EQ(git_blob_sha1_file(folder / "text"), "d670460b4b4aece5915caf5c68d12f560a9fe3e4");
}

} // namespace
} // namespace spool
