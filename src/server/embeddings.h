// /v1/embeddings: OpenAI's request and reply shapes around an Embedder.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/json.h"
#include "llm/embedder.h"

namespace spool {

struct EmbeddingRequest {
    std::vector<std::string> texts;
    TextRole role = TextRole::document; ///< "input_type": "query" puts the model's prefix before the texts
    bool base64 = false;                ///< little-endian float32, as OpenAI's own clients ask for
    size_t dimensions = 0;              ///< keep the first ones and normalise again; 0: all
    std::string model;                  ///< as the client named it; echoed
};

/// `width`: of the embedder's vectors. Throws ApiError 400 naming the field, what it holds and what was
/// expected; for token ids too, since a client's are another tokenizer's.
EmbeddingRequest parse_embedding_request(const Json& body, size_t width);

/// OpenAI's list of vectors with usage. `left`: true once nobody waits for the reply any more; it then ends
/// early with what is there. `texts` and `tokens`, to count, are set.
struct EmbeddingReply {
    Json json;
    size_t texts = 0;
    size_t tokens = 0;
};
EmbeddingReply answer_embeddings(Embedder& embedder, const EmbeddingRequest& request,
                                 const std::string& model, const std::function<bool()>& left);

/// Throws ApiError 501 that says how to get an embedder.
[[noreturn]] void no_embedder();

} // namespace spool
