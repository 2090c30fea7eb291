#include "server/embeddings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>

#include "base64.hpp"
#include "server/api_error.h"

namespace spool {

namespace {

constexpr size_t most_texts = 2048; // as OpenAI's
constexpr size_t slice = 64;        // texts between two looks at whether the client is still there

std::vector<std::string> texts_of(const Json& body) {
    const Json input = body.value("input", Json());
    if (input.is_string()) {
        return {input.get<std::string>()};
    }
    if (!input.is_array() || input.empty()) {
        bad_request("\"input\": expected a string or a list of strings, one or more");
    }
    if (input.size() > most_texts) {
        bad_request(fmt::format("\"input\": {} texts, at most {} in one request", input.size(), most_texts));
    }
    std::vector<std::string> texts;
    texts.reserve(input.size());
    for (const Json& text : input) {
        if (text.is_number() || text.is_array()) {
            bad_request("\"input\": token ids are another tokenizer's; send the text itself (LangChain: "
                        "check_embedding_ctx_length=False)");
        }
        if (!text.is_string()) {
            bad_request(fmt::format("\"input\"[{}]: {} is not a string", texts.size(), text.dump()));
        }
        texts.push_back(text.get<std::string>());
    }
    return texts;
}

/// One of `choices`; the first if the field is absent or null. Returns its index.
size_t choice_of(const Json& body, const char* name, std::span<const std::string_view> choices) {
    const Json value = body.value(name, Json());
    if (value.is_null()) {
        return 0;
    }
    const auto found = std::ranges::find_if(choices, [&](std::string_view choice) {
        return value.is_string() && value.get<std::string>() == choice;
    });
    if (found == choices.end()) {
        bad_request(fmt::format(R"("{}": {} is not "{}" or "{}")", name, value.dump(), choices.front(),
                                choices.back()));
    }
    return static_cast<size_t>(found - choices.begin());
}

size_t dimensions_of(const Json& body, size_t width) {
    const Json value = body.value("dimensions", Json());
    if (value.is_null()) {
        return 0;
    }
    const auto count = value.is_number_integer() ? value.get<int64_t>() : 0;
    if (count < 1 || static_cast<uint64_t>(count) > width) {
        bad_request(
            fmt::format("\"dimensions\": {} is not from 1 to {}, what this model has", value.dump(), width));
    }
    return static_cast<size_t>(count);
}

void shorten(std::vector<float>& vector, size_t dimensions) {
    vector.resize(dimensions);
    const double square = std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0);
    const auto scale = static_cast<float>(1 / std::sqrt(std::max(square, 1e-30)));
    for (float& value : vector) {
        value *= scale;
    }
}

std::string to_base64(const std::vector<float>& vector) {
    static_assert(std::endian::native == std::endian::little);
    const auto bytes = std::as_bytes(std::span(vector));
    std::string text(bytes.size(), '\0');
    std::ranges::transform(bytes, text.begin(), [](std::byte byte) { return static_cast<char>(byte); });
    return base64::encode(text);
}

} // namespace

EmbeddingRequest parse_embedding_request(const Json& body, size_t width) {
    if (!body.is_object()) {
        bad_request("the body is not a JSON object");
    }
    constexpr std::array<std::string_view, 2> formats = {"float", "base64"};
    constexpr std::array<std::string_view, 2> roles = {"document", "query"};
    EmbeddingRequest request;
    request.texts = texts_of(body);
    request.base64 = choice_of(body, "encoding_format", formats) == 1;
    request.role = choice_of(body, "input_type", roles) == 1 ? TextRole::query : TextRole::document;
    request.dimensions = dimensions_of(body, width);
    const Json model = body.value("model", Json());
    request.model = model.is_string() ? model.get<std::string>() : "";
    return request;
}

EmbeddingReply answer_embeddings(Embedder& embedder, const EmbeddingRequest& request,
                                 const std::string& model, const std::function<bool()>& left) {
    EmbeddingReply reply;
    Json data = Json::array();
    const std::span<const std::string> all(request.texts);
    while (reply.texts < all.size() && !left()) {
        Embeddings part =
            embedder.embed(all.subspan(reply.texts, std::min(slice, all.size() - reply.texts)), request.role);
        for (std::vector<float>& vector : part.vectors) {
            if (request.dimensions > 0) {
                shorten(vector, request.dimensions);
            }
            data.push_back({{"object", "embedding"},
                            {"index", data.size()},
                            {"embedding", request.base64 ? Json(to_base64(vector)) : Json(vector)}});
        }
        reply.texts += part.vectors.size();
        reply.tokens += part.tokens;
    }
    reply.json = {{"object", "list"},
                  {"data", std::move(data)},
                  {"model", request.model.empty() ? model : request.model},
                  {"usage", {{"prompt_tokens", reply.tokens}, {"total_tokens", reply.tokens}}}};
    return reply;
}

void no_embedder() {
    throw ApiError(501, "not_supported_error",
                   "this server has no embedder: start it with --embedder FILE, the GGUF of an encoder "
                   "(scripts/fetch-model embedder puts models/all-MiniLM-L6-v2.gguf there, spool convert "
                   "makes one of a BERT folder)");
}

} // namespace spool
