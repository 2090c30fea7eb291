// Texts to vectors: an encoder such as all-MiniLM-L6-v2 behind a libllama context of its own. The vectors are
// those of sentence-transformers (cosine within 1e-3) but for words of more than 100 letters, which libllama
// spells where BERT's tokenizer gives up, and for scripts of India, whose vowel signs libllama takes for
// accents. They have length 1: the dot product of two is their similarity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/token.h"
#include "llm/batch.h"
#include "llm/model.h"

struct llama_context;

namespace spool {

/// How the vectors of a text's tokens become one.
enum class Pooling { mean, cls, last };

/// What a text is for. Some models put a prefix before queries, and only before queries.
enum class TextRole { document, query };

struct EmbedderOptions {
    std::filesystem::path path;
    int threads = 0;     ///< 0: physical cores
    int gpu_layers = -1; ///< see ModelOptions
    /// Nothing: as the file states.
    std::optional<Pooling> pooling = {};
    /// Put before queries. Nothing: what the file states (spool.embedder.query_prefix), and for BGE's English
    /// models, whose files do not state it, "Represent this sentence for searching relevant passages: ".
    std::optional<std::string> query_prefix = {};
    /// Tokens decoded at a time; at least those of the longest text. More fill a GPU; on a CPU the attention
    /// between texts, which is computed and masked, outweighs it.
    uint32_t batch = 512;
};

struct Embeddings {
    std::vector<std::vector<float>> vectors; ///< [texts][width], each of length 1
    size_t tokens = 0;                       ///< read for all of them, [CLS] and [SEP] included
    size_t truncated = 0;                    ///< texts that were cut
};

/// Thread-safe: calls from several threads take turns.
class Embedder {
  public:
    /// Throws Error{not_found|bad_file|out_of_memory}, and Error{unsupported} for a model that is no
    /// embedder: one whose file states no pooling (unless `options` does), or a reranker.
    explicit Embedder(const EmbedderOptions& options);
    ~Embedder();
    Embedder(const Embedder&) = delete;
    Embedder& operator=(const Embedder&) = delete;

    const Model& model() const { return model_; }
    /// Floats in a vector.
    size_t width() const { return width_; }
    /// A text of more tokens, [CLS] and [SEP] included, is cut behind the first ones, as
    /// sentence-transformers cuts it: spool.embedder.max_tokens (256 for all-MiniLM-L6-v2), else the model's
    /// positions.
    size_t max_tokens() const { return max_tokens_; }
    /// Bytes that are touched as texts are embedded: the mapped file and the graph's scratch.
    size_t memory() const { return memory_; }
    Pooling pooling() const { return pooling_; }
    const std::string& query_prefix() const { return query_prefix_; }

    /// Special tokens written out in a text ("[SEP]") are read as such, as sentence-transformers does. Any
    /// number of texts; an empty one has a vector too. Throws Error{invalid_argument} for a text that is too
    /// large to be tokenised.
    Embeddings embed(std::span<const std::string> texts, TextRole role = TextRole::document);
    std::vector<float> embed(const std::string& text, TextRole role = TextRole::document);

    /// The ids a text is embedded as: framed, and cut. `truncated`, if given: whether it was.
    std::vector<Token> tokenize(const std::string& text, TextRole role = TextRole::document,
                                bool* truncated = nullptr) const;

  private:
    struct Deleter {
        void operator()(llama_context* context) const;
    };

    void read_settings(const EmbedderOptions& options);
    void make_context(const EmbedderOptions& options);
    /// Texts of `tokens`, numbered by `group`, in one decode.
    void decode(std::span<const size_t> group, const std::vector<std::vector<Token>>& tokens,
                std::vector<std::vector<float>>& vectors);

    Model model_;
    size_t width_ = 0;
    size_t max_tokens_ = 0;
    size_t batch_tokens_ = 0;
    size_t batch_texts_ = 0;
    bool decomposes_ = false; ///< the vocabulary knows Hangul by its letters
    size_t memory_ = 0;
    Pooling pooling_ = Pooling::mean;
    std::string query_prefix_;
    std::mutex mutex_;
    Batch batch_;
    std::unique_ptr<llama_context, Deleter> context_;
};

} // namespace spool
