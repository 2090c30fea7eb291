#include <gtest/gtest.h>

#include "generation/stop_rules.h"
#include "generation/utf8_stream.h"

namespace spool {
namespace {

TEST(Utf8Stream, NeverSplitsACharacterWhereverTheBytesAreCut) {
    const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z"; // a é € 😀 z
    for (size_t cut = 0; cut <= text.size(); ++cut) {
        Utf8Stream stream;
        const std::string first = stream.push(text.substr(0, cut));
        EXPECT_EQ(incomplete_utf8_tail(first), 0U) << "cut at " << cut;
        const std::string second = stream.push(text.substr(cut));
        EXPECT_EQ(first + second, text);
        EXPECT_EQ(stream.finish(), "");
    }
}

TEST(Utf8Stream, AnUnfinishedCharacterAtTheEndBecomesAReplacement) {
    Utf8Stream stream;
    EXPECT_EQ(stream.push("a\xE2\x82"), "a");
    EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
    EXPECT_EQ(stream.finish(), "");
}

TEST(StopStrings, HoldsBackWhatCouldBeTheStartOfAStop) {
    StopStrings stop({"END", "\n\n"});
    EXPECT_EQ(stop.push("one E"), "one ");
    EXPECT_EQ(stop.push("N"), "");
    EXPECT_EQ(stop.push("T"), "ENT") << "not a stop string after all";
    EXPECT_EQ(stop.push("\n"), "");
    EXPECT_EQ(stop.push("\nmore"), "");
    EXPECT_TRUE(stop.found());
    EXPECT_EQ(stop.push("later"), "") << "nothing after the stop is shown";
}

TEST(StopStrings, TheEarliestOfSeveralStopsCuts) {
    StopStrings stop({"later", "soon"});
    EXPECT_EQ(stop.push("a soon b later"), "a ");
    EXPECT_TRUE(stop.found());
}

TEST(StopStrings, WhatWasHeldBackIsReleasedAtTheEnd) {
    StopStrings stop({"stop"});
    EXPECT_EQ(stop.push("s"), "");
    EXPECT_EQ(stop.finish(), "s");
    EXPECT_FALSE(stop.found());
}

TEST(StopStrings, EmptyStringsNeverStop) {
    StopStrings stop({""});
    EXPECT_EQ(stop.push("text"), "text");
    EXPECT_FALSE(stop.found());
}

TEST(RepetitionRule, FiresAtSixInARowAndNotBefore) {
    RepetitionRule rule(6);
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(rule.push(7));
    }
    EXPECT_FALSE(rule.push(8));
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(rule.push(7));
    }
    EXPECT_TRUE(rule.push(7));
}

TEST(RepetitionRule, ZeroIsOff) {
    RepetitionRule rule(0);
    for (int i = 0; i < 50; ++i) {
        EXPECT_FALSE(rule.push(7));
    }
}

} // namespace
} // namespace spool
