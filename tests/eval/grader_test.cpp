#include <gtest/gtest.h>

#include "eval/grader.h"

namespace spool {
namespace {

TEST(LastBox, IsTheLastThatIsClosedWithItsNestedBraces) {
    EXPECT_EQ(last_box("so \\boxed{4}"), "4");
    EXPECT_EQ(last_box("\\boxed{1} no, \\boxed{2}."), "2");
    EXPECT_EQ(last_box("\\boxed{\\frac{1}{2}}"), "\\frac{1}{2}");
    EXPECT_EQ(last_box("\\boxed {7}"), "7");
    EXPECT_EQ(last_box("\\fbox{9}"), "9");
    EXPECT_EQ(last_box("\\boxed{3} and then \\boxed{4"), "3") << "the second was cut off";
    EXPECT_EQ(last_box("\\boxed{\\text{a {b} c}}"), "\\text{a {b} c}");
    EXPECT_EQ(last_box("no box"), std::nullopt);
    EXPECT_EQ(last_box("\\boxed{"), std::nullopt);
    EXPECT_EQ(last_box(""), std::nullopt);
}

struct Case {
    const char* given;
    const char* expected;
    bool same;
};

class GraderTest : public ::testing::TestWithParam<Case> {};

TEST_P(GraderTest, ComparesByValue) {
    EXPECT_EQ(same_answer(GetParam().given, GetParam().expected), GetParam().same)
        << '"' << GetParam().given << "\" against \"" << GetParam().expected << '"';
}

constexpr Case cases[] = {
    // numbers
    {"72", "72", true},
    {"72.0", "72", true},
    {"072", "72", true},
    {"71", "72", false},
    {"-4", "4", false},
    {"\xE2\x88\x92"
     "4",
     "-4", true},
    {"72.", "72", true},
    {".5", "1/2", true},
    {"720", "72", false},
    {"99999999999999999999", "99999999999999999998", false},
    // fractions
    {"\\frac{1}{2}", "0.5", true},
    {"\\dfrac{3}{4}", "3/4", true},
    {"\\frac34", "0.75", true},
    {"6/8", "3/4", true},
    {"1\\frac{1}{2}", "1.5", true},
    {"1 1/2", "3/2", true},
    {"1/3", "0.333", false},
    {"\\frac{2}{0}", "2", false},
    // separators
    {"1,234", "1234", true},
    {"1{,}234{,}567", "1234567", true},
    {"12,34", "1234", false},
    {"1,234.50", "1234.5", true},
    // units and currency
    {"4 hours", "4", true},
    {"4\\text{ hours}", "4", true},
    {"4 h", "4 hours", true},
    {"4 minutes", "4 hours", false},
    {"\\$25", "25", true},
    {"$25.00", "$25", true},
    {"25 dollars", "$25", true},
    {"90^\\circ", "90", true},
    {"20\\%", "20%", true},
    {"20", "20%", true},
    {"60 km", "60 kilometers", true},
    // several
    {"23 chickens and 7 cows", "23 chickens, 7 cows", true},
    {"7 cows, 23 chickens", "23 chickens, 7 cows", true},
    {"7 chickens and 23 cows", "23 chickens, 7 cows", false},
    {"23, 7", "23 chickens, 7 cows", true},
    {"7, 23", "23 chickens, 7 cows", false},
    {"23", "23 chickens, 7 cows", false},
    // text
    {"Sam", "Sam", true},
    {"\\text{Sam}", "sam", true},
    {"Sam is the tallest", "Sam", true},
    {"not Sam", "Sam", false},
    {"Sam or Tom", "Sam", false},
    {"Samantha", "Sam", false},
    {"", "Sam", false},
    // LaTeX
    {R"(\left( 3, \frac{\pi}{2} \right))", R"((3,\frac{\pi}{2}))", true},
    {"2\\sqrt{3}", "2\\sqrt{3}", true},
    {"2\\sqrt{2}", "2\\sqrt{3}", false},
    {"$x^2 + 1$", "x^2+1", true},
    {"x^2+1", "x^2-1", false},
    {"2x", "2y", false},
};

INSTANTIATE_TEST_SUITE_P(Answers, GraderTest, ::testing::ValuesIn(cases));

} // namespace
} // namespace spool
