// What a file or folder holds, for people and for machines.
#pragma once

#include <filesystem>

#include "core/json.h"

namespace spool {

/// {"path", "kind" (as to_string(SourceKind)), "bytes", "metadata": {key: value}, "tensors": [{"name",
/// "type", "shape", "bytes"}], "problem": null or the message of the check that failed}. Shapes are in
/// PyTorch's order. Arrays of more than 8 elements are given as {"count", "first": [...]}. A session file has
/// "session" besides: the model, bundle and settings it was saved with, and its numbers of tokens and
/// positions. Throws what detect_source throws; what is only unfit for spool (a pooler with a missing tensor,
/// a bundle with a changed file) is reported as the problem.
Json inspect(const std::filesystem::path& path);

} // namespace spool
