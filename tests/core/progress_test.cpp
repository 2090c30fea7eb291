#include <gtest/gtest.h>

#include "core/progress.h"

namespace spool {
namespace {

TEST(Progress, durations_are_written_for_people) {
    EXPECT_EQ(format_duration(0), "0 ms");
    EXPECT_EQ(format_duration(0.85), "850 ms");
    EXPECT_EQ(format_duration(1), "1 s");
    EXPECT_EQ(format_duration(12.4), "12 s");
    EXPECT_EQ(format_duration(59.4), "59 s");
    EXPECT_EQ(format_duration(59.6), "1 min 00 s");
    EXPECT_EQ(format_duration(200), "3 min 20 s");
    EXPECT_EQ(format_duration(3599.6), "1 h 00 min");
    EXPECT_EQ(format_duration(7500), "2 h 05 min");
}

TEST(Progress, byte_counts_are_written_in_binary_units) {
    EXPECT_EQ(format_bytes(0), "0 B");
    EXPECT_EQ(format_bytes(512), "512 B");
    EXPECT_EQ(format_bytes(1023), "1023 B");
    EXPECT_EQ(format_bytes(1536), "1.5 KiB");
    EXPECT_EQ(format_bytes(23.4 * 1024 * 1024), "23.4 MiB");
    EXPECT_EQ(format_bytes(3.0 * 1024 * 1024 * 1024), "3.0 GiB");
    EXPECT_EQ(format_bytes(5000.0 * 1024 * 1024 * 1024 * 1024), "5000.0 TiB");
}

TEST(Progress, a_number_that_rounds_up_to_the_next_unit_is_given_in_it) {
    EXPECT_EQ(format_duration(0.9994), "999 ms");
    EXPECT_EQ(format_duration(0.9996), "1 s");
    EXPECT_EQ(format_duration(59.5), "1 min 00 s");
    EXPECT_EQ(format_duration(3599.4), "59 min 59 s");
    EXPECT_EQ(format_duration(3599.5), "1 h 00 min");
    EXPECT_EQ(format_duration(7169), "1 h 59 min");
    EXPECT_EQ(format_duration(7199), "2 h 00 min");
    constexpr double kib = 1024;
    EXPECT_EQ(format_bytes(1023.4), "1023 B");
    EXPECT_EQ(format_bytes(1023.6), "1.0 KiB");
    EXPECT_EQ(format_bytes(1023.94 * kib), "1023.9 KiB");
    EXPECT_EQ(format_bytes(1023.96 * kib), "1.0 MiB");
    EXPECT_EQ(format_bytes(kib * kib - 1), "1.0 MiB");
    EXPECT_EQ(format_bytes(1023.96 * kib * kib), "1.0 GiB");
    EXPECT_EQ(format_bytes(1023.96 * kib * kib * kib), "1.0 TiB");
    EXPECT_EQ(format_bytes(1024.0 * kib * kib * kib * kib), "1024.0 TiB");
}

TEST(Progress, nothing_to_do_is_no_division_by_zero) {
    Progress progress("empty", 0);
    progress.update(0);
    progress.advance();
    progress.finish();
}

} // namespace
} // namespace spool
