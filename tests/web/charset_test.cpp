// Pages in every encoding, and pages that say the wrong one.
#include <string>

#include <gtest/gtest.h>

#include "web/charset.h"

namespace spool::test {

using namespace std::string_literals;

TEST(Charset, IsReadFromTheContentType) {
    EXPECT_EQ(charset_parameter("text/html; charset=UTF-8"), "utf-8");
    EXPECT_EQ(charset_parameter("text/html;charset=\"Shift_JIS\"; x=y"), "shift_jis");
    EXPECT_EQ(charset_parameter("text/html; CHARSET = latin1"), "latin1");
    EXPECT_EQ(charset_parameter("text/html"), "");
    EXPECT_EQ(charset_parameter("text/html; charset="), "");
}

TEST(Charset, DeclaredOnesAreDecoded) {
    EXPECT_EQ(to_utf8("Z\xFCrich", "iso-8859-1", false), "Zürich");
    EXPECT_EQ(to_utf8("\x93Yes\x94 \x80", "iso-8859-1", false), "“Yes” €")
        << "the web's latin1 is windows-1252";
    EXPECT_EQ(to_utf8("\x95\x78\x8E\x6D\x8E\x52", "shift_jis", false), "富士山");
    EXPECT_EQ(to_utf8("\xC9\xD9\xBB\xCE\xBB\xB3", "euc-jp", false), "富士山");
    EXPECT_EQ(to_utf8("\xB8\xBB\xCA\xBF\xC9\xBD", "gb2312", false), "富士山");
    EXPECT_EQ(to_utf8("\xCF\xF0\xE8\xE2\xE5\xF2", "windows-1251", false), "Привет");
    EXPECT_EQ(to_utf8("\xF0\xD2\xC9\xD7\xC5\xD4", "koi8-r", false), "Привет");
}

TEST(Charset, AByteOrderMarkIsBelievedFirst) {
    EXPECT_EQ(to_utf8("\xEF\xBB\xBFZ\xC3\xBCrich", "iso-8859-1", false), "Zürich");
    EXPECT_EQ(to_utf8("\xFF\xFEH\0i\0"s, "utf-8", false), "Hi");
    EXPECT_EQ(to_utf8("\xFE\xFF\0H\0i"s, "utf-8", false), "Hi");
}

TEST(Charset, TheMetaElementOfAPageIsRead) {
    EXPECT_NE(to_utf8("<meta charset=koi8-r><p>\xF0\xD2\xC9\xD7\xC5\xD4", "", true).find("Привет"),
              std::string::npos);
    EXPECT_NE(to_utf8("<meta http-equiv=Content-Type content='text/html; "
                      "charset=windows-1251'>\xCF\xF0\xE8\xE2\xE5\xF2",
                      "", true)
                  .find("Привет"),
              std::string::npos);
    EXPECT_EQ(to_utf8("<meta charset=koi8-r>\xF0", "", false), "<meta charset=koi8-r>\xC3\xB0") << "no HTML";
}

TEST(Charset, WrongOnesAreCorrected) {
    EXPECT_EQ(to_utf8("Z\xC3\xBCrich", "iso-8859-1", false), "Zürich") << "UTF-8 that says latin1";
    EXPECT_EQ(to_utf8("Z\xFCrich", "utf-8", false), "Zürich") << "latin1 that says UTF-8";
    EXPECT_EQ(to_utf8("Z\xFCrich", "", false), "Zürich") << "says nothing";
    EXPECT_EQ(to_utf8("Z\xC3\xBCrich", "no-such-charset", false), "Zürich");
    EXPECT_EQ(to_utf8("Z\xC3\xBCrich", "utf-7", false), "Zürich") << "iconv knows it, the web does not";
}

TEST(Charset, WhatCannotBeDecodedIsReplaced) {
    const std::string text = to_utf8("\x95\x78\xFF\xFF", "shift_jis", false);
    EXPECT_NE(text.find("富"), std::string::npos);
    EXPECT_NE(text.find("\xEF\xBF\xBD"), std::string::npos);
    EXPECT_EQ(to_utf8("", "utf-8", true), "");
}

} // namespace spool::test
