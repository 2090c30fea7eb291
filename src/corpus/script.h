// The lines of a synthetic trace and where in it they stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.h"
#include "corpus/synthetic.h"

namespace spool {

/// One line. Lines come in chains: a line that answers nothing starts one, each that follows answers a
/// question about the line before it.
struct ScriptLine {
    std::string text;        ///< without the newline that ends it
    size_t answer_begin = 0; ///< bytes of `text` that can only be known from the line before
    size_t answer_bytes = 0; ///< 0: starts a chain
    int32_t distance = 0;    ///< tokens wanted from the end of the line before to the answer

    bool answers() const { return answer_bytes > 0; }
};

struct Script {
    std::string prompt; ///< what the user says; holds none of the facts
    std::vector<ScriptLine> lines;
    std::string closing; ///< the answer behind the thinking
};

/// Writes the lines of one sample. Throws Error{invalid_argument} for more facts than a task has names for.
Script write_script(const SyntheticOptions& options, Random& random);

/// Tokens of filler between two lines, at least.
constexpr int64_t smallest_gap = 16;

/// A line's size in tokens.
struct LineSize {
    int64_t tokens = 0; ///< its newline included
    int64_t before = 0; ///< tokens before its answer's first one
};

/// The first token of each line, counted from the start of the thinking: distances exact, between any two
/// lines a gap of smallest_gap or more. `spread`: chains start up to that much further apart. Throws
/// Error{invalid_argument} naming the least distance that can be set.
std::vector<int64_t> place_lines(const std::vector<ScriptLine>& lines, const std::vector<LineSize>& sizes,
                                 int64_t spread, Random& random);

} // namespace spool
