// How a tokenizer cuts text before merging, and the name llama.cpp knows each way by (tokenizer.ggml.pre).
#pragma once

#include <string>

#include "core/json_file.h"

namespace spool {

/// The name for the `normalizer`, `pre_tokenizer` and `model.ignore_merges` of a tokenizer.json, from a table
/// of structures whose token ids were compared with llama.cpp's: "smollm", "gpt-2", "qwen2",
/// "deepseek-r1-qwen", "llama-bpe", "smaug-bpe". Throws Error{unsupported} for any other structure, with the
/// advice to take the tokenizer from a GGUF of the same family: a wrong guess would tokenize almost right.
std::string pre_tokenizer_name(const JsonFields& tokenizer);

} // namespace spool
