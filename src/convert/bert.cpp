#include "convert/bert.h"

#include <array>

#include "convert/folder_tensors.h"
#include "convert/model_file.h"
#include "convert/tokenizer.h"
#include "convert/wordpiece.h"
#include "core/error.h"

namespace spool {

namespace {

constexpr std::string_view masked_lm_prefix = "bert.";

/// A part of a block: "attention.self.query" in "encoder.layer.N." is "attn_q" in "blk.N.".
struct Part {
    std::string_view hugging_face;
    std::string_view gguf;
};

constexpr std::array<Part, 6> matrices = {{{"attention.self.query", "attn_q"},
                                           {"attention.self.key", "attn_k"},
                                           {"attention.self.value", "attn_v"},
                                           {"attention.output.dense", "attn_output"},
                                           {"intermediate.dense", "ffn_up"},
                                           {"output.dense", "ffn_down"}}};
constexpr std::array<Part, 2> norms = {
    {{"attention.output.LayerNorm", "attn_output_norm"}, {"output.LayerNorm", "layer_output_norm"}}};

class BertTensors {
  public:
    BertTensors(const std::filesystem::path& folder, const BertConfig& config, ggml_type type)
        : config_(config), tensors_(folder), type_(type) {}

    const ModelReport& report() const { return tensors_.report(); }

    void add_to(GgufWriter& writer) {
        const int64_t hidden = config_.hidden;
        const ggml_type outer = is_four_or_five_bit(type_) ? GGML_TYPE_Q8_0 : type_;
        add_matrix(writer, "embeddings.word_embeddings", "token_embd", outer, config_.vocab, hidden);
        add_matrix(writer, "embeddings.position_embeddings", "position_embd", GGML_TYPE_F32,
                   config_.positions, hidden);
        add_matrix(writer, "embeddings.token_type_embeddings", "token_types", GGML_TYPE_F32,
                   config_.token_types, hidden);
        add_norm(writer, "embeddings.LayerNorm", "token_embd_norm");
        for (uint32_t layer = 0; layer < config_.layers; ++layer) {
            add_block(writer, fmt::format("encoder.layer.{}.", layer), fmt::format("blk.{}.", layer));
        }
        tensors_.refuse_leftovers(fmt::format("a BERT encoder with {} layers", config_.layers),
                                  [](std::string_view name) {
                                      if (name.starts_with(masked_lm_prefix)) {
                                          name.remove_prefix(masked_lm_prefix.size());
                                      }
                                      return name == "embeddings.position_ids" ||
                                             name.starts_with("pooler.dense.") || name.starts_with("cls.");
                                  });
    }

  private:
    void add_block(GgufWriter& writer, const std::string& from, const std::string& to) {
        for (const auto& [hugging_face, gguf] : matrices) {
            const int64_t rows = gguf == "ffn_up" ? config_.ffn : config_.hidden;
            const int64_t cols = gguf == "ffn_down" ? config_.ffn : config_.hidden;
            const std::string source = from + std::string(hugging_face);
            const std::string target = to + std::string(gguf);
            add_matrix(writer, source, target, type_, rows, cols);
            tensors_.add(writer, found(source + ".bias"), target + ".bias", GGML_TYPE_F32, {rows});
        }
        for (const auto& [hugging_face, gguf] : norms) {
            add_norm(writer, from + std::string(hugging_face), to + std::string(gguf));
        }
    }

    void add_matrix(GgufWriter& writer, const std::string& from, const std::string& to, ggml_type type,
                    int64_t rows, int64_t cols) {
        tensors_.add(writer, found(from + ".weight"), to + ".weight", fit(type, cols, tensors_.report()),
                     {rows, cols});
    }

    void add_norm(GgufWriter& writer, const std::string& from, const std::string& to) {
        tensors_.add(writer, found(from + ".weight", from + ".gamma"), to + ".weight", GGML_TYPE_F32,
                     {config_.hidden});
        tensors_.add(writer, found(from + ".bias", from + ".beta"), to + ".bias", GGML_TYPE_F32,
                     {config_.hidden});
    }

    /// As the folder calls it: with "bert." before it in a model for masked words, and norms in files of old
    /// with `older` names. `name` itself if there is none of them.
    std::string found(const std::string& name, const std::string& older = "") const {
        for (const std::string& candidate : {name, older}) {
            for (const std::string_view prefix : {std::string_view(), masked_lm_prefix}) {
                const std::string full = std::string(prefix) + candidate;
                if (!candidate.empty() && tensors_.weights().find(full) != nullptr) {
                    return full;
                }
            }
        }
        return name;
    }

    const BertConfig& config_;
    FolderTensors tensors_;
    ggml_type type_;
};

void set_bert_keys(const BertConfig& config, GgufWriter& writer) {
    writer.set("bert.block_count", config.layers);
    writer.set("bert.context_length", config.positions);
    writer.set("bert.embedding_length", config.hidden);
    writer.set("bert.feed_forward_length", config.ffn);
    writer.set("bert.attention.head_count", config.heads);
    writer.set("bert.attention.layer_norm_epsilon", static_cast<float>(config.norm_eps));
    writer.set("bert.attention.causal", false);
    writer.set("bert.pooling_type", config.pooling);
    writer.set("tokenizer.ggml.token_type_count", config.token_types);
    writer.set("spool.embedder.max_tokens", config.max_tokens);
    if (!config.query_prefix.empty()) {
        writer.set("spool.embedder.query_prefix", config.query_prefix);
    }
}

} // namespace

ModelReport bert_to_gguf(const std::filesystem::path& folder, const JsonFields& config,
                         const std::filesystem::path& destination, const ModelConversionOptions& options) {
    const BertConfig bert = parse_bert_config(folder, config);
    const ggml_type type = options.type.value_or(GGML_TYPE_F16);
    BertTensors tensors(folder, bert, type);
    GgufWriter writer;
    const auto tokenizer = options.tokenizer_from
                               ? tokenizer_from_gguf(GgufFile(*options.tokenizer_from), bert.vocab)
                               : wordpiece_from_folder(folder, bert.vocab);
    for (const GgufPair& pair : tokenizer) {
        writer.set(pair.key, pair.value);
    }
    set_general_keys(writer, "bert", folder, options, type);
    set_bert_keys(bert, writer);
    tensors.add_to(writer);
    write_with_progress(writer, destination);
    warn(folder.string(), tensors.report());
    return tensors.report();
}

} // namespace spool
