#include "convert/model.h"

#include "convert/architecture.h"
#include "convert/bert.h"
#include "convert/file_type.h"
#include "convert/folder_tensors.h"
#include "convert/hf_config.h"
#include "convert/model_file.h"
#include "convert/rope_rows.h"
#include "convert/tokenizer.h"
#include "core/error.h"

namespace spool {

namespace {

/// Turns a folder's tensors into a GGUF's, one by one, and keeps count of those that found a place.
class FolderConverter {
  public:
    FolderConverter(const std::filesystem::path& folder, const HfConfig& config,
                    const ModelConversionOptions& options)
        : config_(config), tensors_(folder), type_(options.type.value_or(default_type())) {}

    ggml_type type() const { return type_; }
    const ModelReport& report() const { return tensors_.report(); }

    void add_tensors(GgufWriter& writer) {
        const auto& shape = config_.shape;
        const auto head = [&](uint32_t heads) { return int64_t{heads} * config_.head_size; };
        const int64_t hidden = shape.hidden;
        add_matrix(writer, "model.embed_tokens", "token_embd", {config_.vocab, hidden}, 0);
        for (uint32_t layer = 0; layer < shape.layers; ++layer) {
            const std::string from = "model.layers." + std::to_string(layer) + ".";
            const std::string to = "blk." + std::to_string(layer) + ".";
            add_vector(writer, from + "input_layernorm.weight", to + "attn_norm.weight", hidden);
            add_vector(writer, from + "post_attention_layernorm.weight", to + "ffn_norm.weight", hidden);
            for (const BlockModule& module : block_modules()) {
                const auto [rows, cols] = module_shape(module.gguf, head);
                const uint32_t heads = rope_heads(shape, module.gguf);
                const std::string source = from + std::string(module.hugging_face);
                const std::string target = to + std::string(module.gguf);
                add_matrix(writer, source, target, {rows, cols}, heads);
                if (tensors_.weights().find(source + ".bias") != nullptr) {
                    add_vector(writer, source + ".bias", target + ".bias", rows, heads);
                }
            }
        }
        add_vector(writer, "model.norm.weight", "output_norm.weight", hidden);
        if (!config_.tied) {
            add_matrix(writer, "lm_head", "output", {config_.vocab, hidden}, 0);
        } else {
            tensors_.mark_used("lm_head.weight"); // some files hold the embedding a second time
        }
        tensors_.refuse_leftovers(
            fmt::format("a model of architecture '{}' with {} layers", shape.architecture, shape.layers),
            [](std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); });
    }

  private:
    struct Shape {
        int64_t rows;
        int64_t cols;
    };

    template <typename Head>
    Shape module_shape(std::string_view module, Head head) const {
        const int64_t hidden = config_.shape.hidden;
        const int64_t ffn = config_.ffn;
        if (module == "attn_q") {
            return {head(config_.shape.heads), hidden};
        }
        if (module == "attn_k" || module == "attn_v") {
            return {head(config_.shape.kv_heads), hidden};
        }
        if (module == "attn_output") {
            return {hidden, head(config_.shape.heads)};
        }
        return module == "ffn_down" ? Shape{hidden, ffn} : Shape{ffn, hidden};
    }

    ggml_type default_type() const {
        if (config_.mlx_group) {
            return GGML_TYPE_Q4_1;
        }
        const DType dtype = tensors_.require("model.embed_tokens.weight").dtype;
        return dtype == DType::f16 ? GGML_TYPE_F16 : dtype == DType::bf16 ? GGML_TYPE_BF16 : GGML_TYPE_F32;
    }

    static RowOrder order_for(int64_t rows, uint32_t heads) {
        return heads == 0 ? RowOrder{} : rows_from_hugging_face(rows, heads);
    }

    void add_vector(GgufWriter& writer, const std::string& from, const std::string& to, int64_t size,
                    uint32_t heads = 0) {
        tensors_.add(writer, from, to, GGML_TYPE_F32, {size}, order_for(size, heads));
    }

    /// `from` and `to` without ".weight".
    void add_matrix(GgufWriter& writer, const std::string& from, const std::string& to, Shape shape,
                    uint32_t heads) {
        const std::string name = from + ".weight";
        const HfWeights& weights = tensors_.weights();
        const RowOrder order = order_for(shape.rows, heads);
        if (const auto matrix =
                config_.mlx_group ? weights.find_mlx(from, *config_.mlx_group) : std::nullopt) {
            tensors_.check_shape(name, std::vector{matrix->rows, matrix->cols}, {shape.rows, shape.cols});
            for (const char* part : {".weight", ".scales", ".biases"}) {
                tensors_.mark_used(from + part);
            }
            ++tensors_.report().tensors;
            const ggml_type type = type_for(*matrix);
            writer.add(to + ".weight", type, {shape.cols, shape.rows},
                       stream_rows(weights.describe(name), *matrix, type, order));
            return;
        }
        tensors_.add(writer, name, to + ".weight", fit(type_for(to), shape.cols, tensors_.report()),
                     {shape.rows, shape.cols}, order);
    }

    /// As llama.cpp's own 4-bit files, the embedding and the output keep 8 bits.
    ggml_type type_for(const std::string& module) const {
        const bool outer = module == "token_embd" || module == "output";
        return outer && is_four_or_five_bit(type_) && !config_.mlx_group ? GGML_TYPE_Q8_0 : type_;
    }

    ggml_type type_for(const MlxMatrix& matrix) {
        if (type_ != GGML_TYPE_Q4_1) {
            return fit(type_, matrix.cols, tensors_.report());
        }
        if (fits_q4_1(matrix)) {
            ++tensors_.report().mlx_exact;
            return GGML_TYPE_Q4_1;
        }
        ++tensors_.report().mlx_inexact;
        return GGML_TYPE_Q8_0; // groups are multiples of 32, so are the rows
    }

    const HfConfig& config_;
    FolderTensors tensors_;
    ggml_type type_;
};

void set_model_keys(const HfConfig& config, GgufWriter& writer) {
    const auto& shape = config.shape;
    const auto key = [&](const char* rest) { return shape.architecture + "." + rest; };
    writer.set(key("block_count"), shape.layers);
    writer.set(key("context_length"), config.context);
    writer.set(key("embedding_length"), shape.hidden);
    writer.set(key("feed_forward_length"), config.ffn);
    writer.set(key("attention.head_count"), shape.heads);
    writer.set(key("attention.head_count_kv"), shape.kv_heads);
    writer.set(key("rope.freq_base"), static_cast<float>(config.rope_base));
    writer.set(key("attention.layer_norm_rms_epsilon"), static_cast<float>(config.rms_eps));
    if (config.states_head_size) {
        writer.set(key("attention.key_length"), config.head_size);
        writer.set(key("attention.value_length"), config.head_size);
    }
    if (shape.architecture == "llama") {
        writer.set(key("vocab_size"), config.vocab);
        writer.set(key("rope.dimension_count"), config.head_size);
    }
}

} // namespace

ModelReport hugging_face_to_gguf(const std::filesystem::path& folder,
                                 const std::filesystem::path& destination,
                                 const ModelConversionOptions& options) {
    const JsonFields json = read_json_file(folder / "config.json");
    if (is_bert(json)) {
        return bert_to_gguf(folder, json, destination, options);
    }
    const HfConfig config = parse_hf_config(json);
    FolderConverter converter(folder, config, options);
    GgufWriter writer;
    set_general_keys(writer, config.shape.architecture, folder, options, converter.type());
    set_model_keys(config, writer);
    converter.add_tensors(writer);
    std::vector<float> factors;
    if (config.llama3_rope) {
        factors = rope_factors(*config.llama3_rope, config.rope_base, config.head_size);
        writer.add("rope_freqs.weight", GGML_TYPE_F32, {static_cast<int64_t>(factors.size())},
                   std::as_bytes(std::span(factors)));
    }
    const auto tokenizer = options.tokenizer_from
                               ? tokenizer_from_gguf(GgufFile(*options.tokenizer_from), config.vocab)
                               : tokenizer_from_folder(folder, config.shape.architecture, config.vocab);
    for (const GgufPair& pair : tokenizer) {
        writer.set(pair.key, pair.value);
    }
    write_with_progress(writer, destination);
    warn(folder.string(), converter.report());
    return converter.report();
}

ModelReport gguf_to_gguf(const std::filesystem::path& source, const std::filesystem::path& destination,
                         ggml_type type) {
    const GgufFile file(source);
    if (file.optional_u32("split.count").value_or(1) > 1) {
        fail(ErrorCode::unsupported, "{}: is one part of a split model; merge the parts first",
             source.string());
    }
    ModelReport report;
    GgufWriter writer;
    for (const GgufPair& pair : file.pairs()) {
        writer.set(pair.key, pair.value);
    }
    writer.set("general.file_type", file_type(type));
    for (const GgufTensor& tensor : file.tensors()) {
        ++report.tensors;
        const bool integer = tensor.type == GGML_TYPE_I8 || tensor.type == GGML_TYPE_I16 ||
                             tensor.type == GGML_TYPE_I32 || tensor.type == GGML_TYPE_I64;
        if (integer) {
            writer.add(tensor.name, tensor.type, tensor.ne, tensor.data);
            continue;
        }
        const ggml_type stored = tensor.ne.size() < 2 ? GGML_TYPE_F32 : fit(type, tensor.ne.front(), report);
        writer.add(tensor.name, stored, tensor.ne,
                   stream_rows(source.string() + ": tensor '" + tensor.name + "'", tensor, stored));
    }
    write_with_progress(writer, destination);
    warn(source.string(), report);
    return report;
}

} // namespace spool
