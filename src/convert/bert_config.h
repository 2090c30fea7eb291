// config.json of a BERT folder, and what sentence-transformers keeps beside it: how token vectors become one
// vector of the text, and how long a text may be.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/json_file.h"

namespace spool {

struct BertConfig {
    uint32_t layers = 0;
    uint32_t hidden = 0;
    uint32_t heads = 0;
    uint32_t ffn = 0;
    uint32_t vocab = 0;
    uint32_t positions = 0;   ///< rows of the table of positions
    uint32_t token_types = 0; ///< rows of the table of segments
    double norm_eps = 0;
    uint32_t pooling = 0;     ///< libllama's number: mean 1, CLS 2, last token 3
    uint32_t max_tokens = 0;  ///< longer texts are cut, [CLS] and [SEP] included; at most `positions`
    std::string query_prefix; ///< of a query, from the prompts of config_sentence_transformers.json; or empty
};

/// True if `config` names an architecture of BERT's encoder.
bool is_bert(const JsonFields& config);

/// `config` is the config.json of `folder`. A folder that sentence-transformers did not write pools by mean,
/// as sentence-transformers itself does then. Throws Error{bad_file}, and Error{unsupported} naming the field
/// for what would make the converted model compute something else (other activations, relative positions,
/// other poolings, further layers behind the pooling).
BertConfig parse_bert_config(const std::filesystem::path& folder, const JsonFields& config);

} // namespace spool
