#include <set>

#include <gtest/gtest.h>

#include "core/error.h"

namespace spool {
namespace {

TEST(Error, carries_its_code_and_a_formatted_message) {
    try {
        fail(ErrorCode::bad_file, "{}: byte {}: too short", "a.gguf", 24);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file);
        EXPECT_STREQ(error.what(), "a.gguf: byte 24: too short");
        return;
    }
    FAIL() << "nothing was thrown";
}

TEST(Error, every_code_has_a_name_of_its_own) {
    std::set<std::string_view> names;
    for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
        names.insert(to_string(static_cast<ErrorCode>(code)));
    }
    EXPECT_EQ(names.size(), static_cast<size_t>(ErrorCode::internal) + 1);
}

} // namespace
} // namespace spool
