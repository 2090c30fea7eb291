// The shapes in which corpora keep a chain of thought, and what each becomes.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "corpus/trace.h"

namespace spool {

/// Why a record, or one of its generations, gives no trace.
struct Rejection {
    std::string reason; ///< one of a few words, to count by: "no_prompt", "incorrect", ...
    std::string detail; ///< for the reader of a message
};

struct ShapeResult {
    std::vector<Trace> traces;
    std::vector<Rejection> rejected;
};

/// Reads one record. Which shape it has follows from its fields:
///   prompt | problem | question | instruction, with think | reasoning | reasoning_content and
///       answer | response | output          one trace (spool's own files)
///   messages [{role, content}] ending with the user's, with the same reply fields (dolphin-r1)
///   messages, or conversations [{from, value}], ending with the assistant's, whose thinking is in
///       <think> tags or in <|begin_of_thought|> ones (OpenThoughts); `system` may stand beside them
///   problem or messages, with generations ["<think>..."] (OpenR1-Math): one trace for each generation
///       that correctness_math_verify or correctness_llama calls right and is_reasoning_complete complete;
///       where the record has none of these fields, all generations
/// A system prompt that asks for <|begin_of_thought|> tags is dropped with the tags.
/// Reasons: not_an_object, no_prompt, bad_messages, no_reply, unfinished_think, incorrect, incomplete.
ShapeResult traces_of(const Json& record);

/// Splits a reply into thinking and answer. Returns a rejection with a reason if the thinking does not end.
/// `trace.think` is empty if there are no tags.
std::vector<Rejection> read_reply(std::string_view reply, Trace& trace);

} // namespace spool
