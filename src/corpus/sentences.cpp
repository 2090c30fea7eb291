#include "corpus/sentences.h"

#include <array>
#include <string_view>

#include <fmt/core.h>

#include "core/random.h"

namespace spool {

namespace {

constexpr std::array<std::string_view, 20> adjectives = {
    "old",   "quiet", "tall",  "young", "careful", "tired", "clever", "small", "patient", "strange",
    "happy", "slow",  "brave", "lazy",  "gentle",  "proud", "busy",   "shy",   "honest",  "curious"};
constexpr std::array<std::string_view, 24> people = {
    "farmer", "teacher", "sailor", "baker",   "doctor", "painter", "child",  "neighbour",
    "singer", "driver",  "writer", "king",    "nurse",  "hunter",  "tailor", "student",
    "guest",  "judge",   "cook",   "soldier", "widow",  "miller",  "guide",  "stranger"};
constexpr std::array<std::string_view, 24> verbs = {
    "walked",  "waited",   "slept",   "worked", "sang",      "talked", "stood",   "laughed",
    "looked",  "listened", "played",  "rested", "travelled", "read",   "dreamed", "danced",
    "stopped", "returned", "hurried", "stayed", "whistled",  "smiled", "argued",  "wandered"};
constexpr std::array<std::string_view, 8> prepositions = {"near",   "behind", "beside",  "past",
                                                          "around", "inside", "outside", "above"};
constexpr std::array<std::string_view, 24> places = {
    "river",   "market", "house",   "forest", "harbour", "school", "church", "mountain",
    "field",   "road",   "castle",  "mill",   "village", "shop",   "lake",   "station",
    "orchard", "valley", "library", "stable", "meadow",  "inn",    "cellar", "square"};
constexpr std::array<std::string_view, 16> times = {
    "in the morning", "at noon",   "after supper",  "before dawn",    "all day",   "for an hour",
    "every evening",  "in winter", "in the rain",   "under the moon", "on Sunday", "in spring",
    "for a while",    "at night",  "in the summer", "without a word"};
constexpr std::array<std::string_view, 12> joints = {"and", "but",  "while", "because",  "so",    "until",
                                                     "as",  "when", "since", "although", "where", "before"};

template <size_t Size>
std::string_view one_of(const std::array<std::string_view, Size>& words, Random& random) {
    return words[random.below(Size)];
}

std::string someone(Random& random) {
    return fmt::format("the {} {}", one_of(adjectives, random), one_of(people, random));
}

std::string clause(Random& random) {
    std::string text = fmt::format("{} {} {} the {}", someone(random), one_of(verbs, random),
                                   one_of(prepositions, random), one_of(places, random));
    if (random.below(2) == 0) {
        text += fmt::format(" {}", one_of(times, random));
    }
    return text;
}

} // namespace

std::string made_up_text(size_t bytes, uint64_t seed) {
    Random random(seed);
    std::string text;
    while (text.size() < bytes) {
        for (uint64_t sentences = 2 + random.below(5); sentences > 0; --sentences) {
            std::string sentence = clause(random);
            if (random.below(3) == 0) {
                sentence += fmt::format(", {} {}", one_of(joints, random), clause(random));
            }
            sentence.front() = 'T';
            text += sentence + (sentences > 1 ? ". " : ".\n\n");
        }
    }
    return text;
}

} // namespace spool
