#include "llm/embedder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <llama.h>

#include "../src/llama-ext.h"
#include "core/error.h"
#include "formats/gguf.h"
#include "llm/backend.h"
#include "llm/hangul.h"
#include "llm/tokenizer.h"

namespace spool {

namespace {

constexpr size_t libllama_sequences = 256; // the most of one decode
constexpr const char* bge_prefix = "Represent this sentence for searching relevant passages: ";

/// "BGE Small En V1.5" and "bge-small-en-v1.5", but not "bge-m3" and "bge-large-zh".
bool is_english_bge(std::string name) {
    std::ranges::transform(name, name.begin(), [](unsigned char letter) {
        return letter == ' ' || letter == '_' ? '-' : static_cast<char>(std::tolower(letter));
    });
    return name.find("bge-") != std::string::npos && name.find("-en") != std::string::npos;
}

enum llama_pooling_type to_libllama(const std::optional<Pooling>& pooling) {
    if (!pooling) {
        return LLAMA_POOLING_TYPE_UNSPECIFIED;
    }
    switch (*pooling) {
    case Pooling::mean:
        return LLAMA_POOLING_TYPE_MEAN;
    case Pooling::cls:
        return LLAMA_POOLING_TYPE_CLS;
    case Pooling::last:
        break;
    }
    return LLAMA_POOLING_TYPE_LAST;
}

Pooling from_libllama(enum llama_pooling_type type, const std::string& path) {
    switch (type) {
    case LLAMA_POOLING_TYPE_MEAN:
        return Pooling::mean;
    case LLAMA_POOLING_TYPE_CLS:
        return Pooling::cls;
    case LLAMA_POOLING_TYPE_LAST:
        return Pooling::last;
    case LLAMA_POOLING_TYPE_RANK:
        fail(ErrorCode::unsupported, "{}: is a reranker: it scores pairs of texts and embeds none", path);
    default:
        fail(ErrorCode::unsupported,
             "{}: is no embedder: the file states no pooling. Give the GGUF of an encoder such as "
             "all-MiniLM-L6-v2 (scripts/fetch-model embedder), or convert a BERT folder with spool convert",
             path);
    }
}

std::vector<float> normalized(const float* values, size_t width) {
    std::vector<float> vector(values, values + width);
    const double square = std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0);
    if (!std::isfinite(square) || square <= 0) {
        fail(ErrorCode::internal, "the embedder gave a vector of no length");
    }
    const auto scale = static_cast<float>(1 / std::sqrt(square));
    for (float& value : vector) {
        value *= scale;
    }
    return vector;
}

} // namespace

void Embedder::Deleter::operator()(llama_context* context) const { llama_free(context); }

Embedder::Embedder(const EmbedderOptions& options)
    : model_({.path = options.path, .gpu_layers = options.gpu_layers, .on_progress = {}}) {
    read_settings(options);
    make_context(options);
}

Embedder::~Embedder() = default;

void Embedder::read_settings(const EmbedderOptions& options) {
    const GgufFile file(options.path);
    width_ = static_cast<size_t>(llama_model_n_embd_out(model_.handle()));
    max_tokens_ = static_cast<size_t>(std::max(1, model_.facts().trained_context));
    constexpr size_t most_tokens = 8192; // the longest of encoders; a decoder may state far more
    max_tokens_ = std::min(max_tokens_, most_tokens);
    if (const auto cut = file.optional_u32("spool.embedder.max_tokens")) {
        max_tokens_ = std::clamp<size_t>(*cut, 1, max_tokens_);
    }
    if (options.query_prefix) {
        query_prefix_ = *options.query_prefix;
    } else if (const auto stated = file.optional_string("spool.embedder.query_prefix")) {
        query_prefix_ = *stated;
    } else if (is_english_bge(model_.facts().name)) {
        query_prefix_ = bge_prefix;
    }
    const auto flag = [&](const char* key) {
        const GgufValue* value = file.find(key);
        return value != nullptr && std::holds_alternative<bool>(*value)
                   ? std::optional(std::get<bool>(*value))
                   : std::nullopt;
    };
    const bool lowercase = flag("tokenizer.ggml.normalizer.lowercase").value_or(true);
    decomposes_ = flag("tokenizer.ggml.normalizer.strip_accents").value_or(lowercase);
    const llama_vocab* vocab = llama_model_get_vocab(model_.handle());
    const bool framed = llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_WPM;
    decomposes_ = decomposes_ && framed;
    const auto known = [&](llama_token token) { return token >= 0 && token < llama_vocab_n_tokens(vocab); };
    if (framed && (!known(llama_vocab_bos(vocab)) || !known(llama_vocab_sep(vocab)))) {
        fail(ErrorCode::bad_file, "{}: its vocabulary has no tokens to put around a text ([CLS], [SEP])",
             options.path.string());
    }
}

void Embedder::make_context(const EmbedderOptions& options) {
    constexpr uint32_t most_batch = 1U << 16U;
    const auto longest = static_cast<uint32_t>(max_tokens_);
    const uint32_t batch = std::max(longest, std::min(options.batch, most_batch));
    const int threads = options.threads > 0 ? options.threads : physical_cores();
    batch_tokens_ = batch;
    batch_texts_ = std::min<size_t>(libllama_sequences, batch);
    auto params = llama_context_default_params();
    params.embeddings = true;
    params.pooling_type = to_libllama(options.pooling);
    params.n_ctx = batch;
    params.n_batch = batch;
    params.n_ubatch = batch; // an encoder reads its input whole
    params.n_seq_max = static_cast<uint32_t>(batch_texts_);
    params.kv_unified = true; // each text may fill the whole batch
    params.n_threads = threads;
    params.n_threads_batch = threads;
    params.no_perf = true;
    clear_backend_message();
    context_.reset(llama_init_from_model(model_.handle(), params));
    if (!context_) {
        fail(ErrorCode::out_of_memory, "{}: libllama cannot make a context of {} tokens: {}",
             options.path.string(), batch, last_backend_message());
    }
    for (const auto& [type, data] : llama_get_memory_breakdown(context_.get())) {
        memory_ += data.model + data.context + data.compute;
    }
    pooling_ = from_libllama(llama_pooling_type(context_.get()), options.path.string());
}

std::vector<Token> Embedder::tokenize(const std::string& text, TextRole role, bool* truncated) const {
    std::string read = role == TextRole::query ? query_prefix_ + text : text;
    if (decomposes_) {
        read = decompose_hangul(read);
    }
    std::vector<Token> tokens = Tokenizer(model_).encode(read, true, true);
    const bool cut = tokens.size() > max_tokens_;
    if (cut) {
        // The last token stays the last: [SEP].
        const Token last = tokens.back();
        tokens.resize(max_tokens_);
        tokens.back() = last;
    }
    if (truncated != nullptr) {
        *truncated = cut;
    }
    return tokens;
}

Embeddings Embedder::embed(std::span<const std::string> texts, TextRole role) {
    Embeddings result;
    result.vectors.resize(texts.size());
    std::vector<std::vector<Token>> tokens;
    tokens.reserve(texts.size());
    for (const std::string& text : texts) {
        bool truncated = false;
        tokens.push_back(tokenize(text, role, &truncated));
        if (tokens.back().empty()) { // only where the vocabulary frames no text
            fail(ErrorCode::invalid_argument, "an empty text has no vector in this model");
        }
        result.tokens += tokens.back().size();
        result.truncated += truncated ? 1 : 0;
    }
    // Long ones first, so that a decode is filled with its like.
    std::vector<size_t> order(texts.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(
        order, [&](size_t left, size_t right) { return tokens[left].size() > tokens[right].size(); });
    const std::scoped_lock lock(mutex_);
    size_t first = 0;
    while (first < order.size()) {
        size_t last = first;
        for (size_t used = 0; last < order.size() && last - first < batch_texts_; ++last) {
            used += tokens[order[last]].size();
            if (used > batch_tokens_) {
                break;
            }
        }
        decode(std::span(order).subspan(first, last - first), tokens, result.vectors);
        first = last;
    }
    return result;
}

std::vector<float> Embedder::embed(const std::string& text, TextRole role) {
    return std::move(embed(std::span(&text, 1), role).vectors.front());
}

void Embedder::decode(std::span<const size_t> group, const std::vector<std::vector<Token>>& tokens,
                      std::vector<std::vector<float>>& vectors) {
    batch_.clear();
    for (size_t sequence = 0; sequence < group.size(); ++sequence) {
        Position position = 0;
        for (const Token token : tokens[group[sequence]]) {
            batch_.add(token, position++, static_cast<SequenceId>(sequence), true);
        }
    }
    if (const llama_memory_t memory = llama_get_memory(context_.get())) {
        llama_memory_clear(memory, true); // of a decoder that serves as an embedder
    }
    clear_backend_message();
    if (const int status = llama_decode(context_.get(), batch_.view(0, batch_.size())); status != 0) {
        fail(ErrorCode::internal, "libllama failed to embed {} tokens (status {}): {}", batch_.size(), status,
             last_backend_message());
    }
    for (size_t sequence = 0; sequence < group.size(); ++sequence) {
        const float* values = llama_get_embeddings_seq(context_.get(), static_cast<SequenceId>(sequence));
        if (values == nullptr) {
            fail(ErrorCode::internal, "libllama gave no vector for text {} of a decode", sequence);
        }
        vectors[group[sequence]] = normalized(values, width_);
    }
}

} // namespace spool
