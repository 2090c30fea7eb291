#include "convert/lora.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "convert/architecture.h"
#include "convert/peft_config.h"
#include "convert/rope_rows.h"
#include "convert/row_stream.h"
#include "core/error.h"
#include "formats/lora_keys.h"
#include "formats/safetensors.h"

namespace spool {

namespace {

constexpr std::string_view weights_name = "adapter_model.safetensors";
constexpr std::string_view config_name = "adapter_config.json";
constexpr std::string_view peft_prefix = "base_model.model.model.layers.";

/// One of the two factors of an adapted matrix.
struct Factor {
    uint32_t layer = 0;
    BlockModule module;
    bool is_b = false;
};

/// Splits "N.rest"; nothing if it does not start with a number.
std::optional<std::pair<uint32_t, std::string_view>> split_layer(std::string_view text) {
    uint32_t layer = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
    const auto length = static_cast<size_t>(end - text.data());
    if (error != std::errc{} || length >= text.size() || text[length] != '.') {
        return std::nullopt;
    }
    return std::pair{layer, text.substr(length + 1)};
}

std::string_view refusal(std::string_view name) {
    if (name.find("lora_embedding_") != std::string_view::npos) {
        return "an adapter on the embeddings";
    }
    if (name.find("lora_magnitude_vector") != std::string_view::npos) {
        return "DoRA (use_dora)";
    }
    if (name.ends_with(".bias")) {
        return "a bias (lora_bias)";
    }
    if (name.find(".lora_A") == std::string_view::npos && name.find(".lora_B") == std::string_view::npos) {
        return "a whole weight (modules_to_save)";
    }
    return "an adapter on a matrix outside the seven of a block";
}

/// "base_model.model.model.layers.N.MODULE.lora_A.weight", with an adapter's name before ".weight" or
/// without.
Factor parse_peft_name(const std::string& source, const std::string& name) {
    std::string_view text = name;
    if (text.starts_with(peft_prefix) && text.ends_with(".weight")) {
        if (const auto split = split_layer(text.substr(peft_prefix.size()))) {
            for (const BlockModule& module : block_modules()) {
                const auto rest = split->second;
                if (!rest.starts_with(module.hugging_face)) {
                    continue;
                }
                const auto factor = rest.substr(module.hugging_face.size());
                if (factor.starts_with(".lora_A.") || factor.starts_with(".lora_B.")) {
                    return {split->first, module, factor.starts_with(".lora_B.")};
                }
            }
        }
    }
    fail(ErrorCode::unsupported, "{}: tensor '{}' is {}, which lora.gguf cannot express", source, name,
         refusal(name));
}

/// "blk.N.MODULE.weight.lora_a".
Factor parse_gguf_name(const std::string& source, const std::string& name) {
    constexpr std::string_view prefix = "blk.";
    if (name.starts_with(prefix)) {
        if (const auto split = split_layer(std::string_view(name).substr(prefix.size()))) {
            for (const BlockModule& module : block_modules()) {
                const std::string stem = std::string(module.gguf) + ".weight";
                if (split->second == stem + ".lora_a" || split->second == stem + ".lora_b") {
                    return {split->first, module, split->second.ends_with('b')};
                }
            }
        }
    }
    fail(ErrorCode::unsupported,
         "{}: tensor '{}' is outside the seven matrices of a block that PEFT adapters of "
         "spool hold",
         source, name);
}

std::string gguf_name(const Factor& factor) {
    return "blk." + std::to_string(factor.layer) + "." + std::string(factor.module.gguf) + ".weight" +
           (factor.is_b ? ".lora_b" : ".lora_a");
}

std::string peft_name(const Factor& factor) {
    return std::string(peft_prefix) + std::to_string(factor.layer) + "." +
           std::string(factor.module.hugging_face) + (factor.is_b ? ".lora_B.weight" : ".lora_A.weight");
}

/// The base model's matrix a factor belongs to must exist and have its sizes.
void check_shape(const std::string& source, const TensorView& tensor, const Factor& factor, uint32_t rank,
                 const GgufFile& base) {
    const std::string weight =
        "blk." + std::to_string(factor.layer) + "." + std::string(factor.module.gguf) + ".weight";
    const GgufTensor* matrix = base.find_tensor(weight);
    if (matrix == nullptr || matrix->ne.size() != 2) {
        fail(ErrorCode::incompatible,
             "{}: tensor '{}' adapts {}, which {} does not have; the adapter is for another "
             "model",
             source, tensor.name, weight, base.path().string());
    }
    const std::vector<int64_t> expected =
        factor.is_b ? std::vector<int64_t>{matrix->ne[1], rank} : std::vector<int64_t>{rank, matrix->ne[0]};
    if (tensor.shape != expected) {
        fail(ErrorCode::incompatible, "{}: tensor '{}' has shape {}, but r = {} and {} of {} call for {}",
             source, tensor.name, shape_string(tensor.shape), rank, weight, base.path().string(),
             shape_string(expected));
    }
}

/// Each matrix needs both factors, once.
class Pairs {
  public:
    void add(const std::string& source, const Factor& factor) {
        const std::string name = gguf_name(factor);
        if (!seen_.insert(name).second) {
            fail(ErrorCode::bad_file, "{}: two tensors stand for '{}'", source, name);
        }
    }
    void check(const std::string& source) const {
        if (seen_.empty()) {
            fail(ErrorCode::bad_file, "{}: holds no LoRA matrices", source);
        }
        for (const std::string& name : seen_) {
            std::string other = name;
            other.back() = name.back() == 'a' ? 'b' : 'a';
            if (!seen_.contains(other)) {
                fail(ErrorCode::bad_file, "{}: '{}' is there, but its partner '{}' is missing", source, name,
                     other);
            }
        }
    }

  private:
    std::set<std::string> seen_;
};

ggml_type own_type(const std::string& source, const TensorView& tensor) {
    switch (tensor.dtype) {
    case DType::f16:
        return GGML_TYPE_F16;
    case DType::bf16:
        return GGML_TYPE_BF16;
    case DType::f32:
    case DType::f64:
        return GGML_TYPE_F32;
    default:
        fail(ErrorCode::unsupported, "{}: tensor '{}' is of type {}, expected f32, f16 or bf16", source,
             tensor.name, dtype_name(tensor.dtype));
    }
}

/// Throws unless the rows of q and k can be split into heads of an even size.
void check_heads(const std::string& source, const std::string& name, int64_t rows, uint32_t heads) {
    if (heads != 0 && rows % (int64_t{2} * heads) != 0) {
        fail(ErrorCode::bad_file, "{}: '{}' has {} rows, which {} heads of an even size cannot share", source,
             name, rows, heads);
    }
}

DType dtype_of(const std::string& source, const GgufTensor& tensor) {
    switch (tensor.type) {
    case GGML_TYPE_F32:
        return DType::f32;
    case GGML_TYPE_F16:
        return DType::f16;
    case GGML_TYPE_BF16:
        return DType::bf16;
    default:
        fail(ErrorCode::unsupported, "{}: tensor '{}' is of type {}, expected f32, f16 or bf16", source,
             tensor.name, ggml_type_name(tensor.type));
    }
}

void check_is_lora(const GgufFile& file) {
    if (file.optional_string("general.type") != "adapter" || file.optional_string("adapter.type") != "lora") {
        fail(ErrorCode::bad_file,
             "{}: keys general.type and adapter.type do not say 'adapter' and 'lora': not a LoRA "
             "adapter",
             file.path().string());
    }
}

/// The model the adapter of a lora.gguf was made for, as far as turning it back needs it.
ModelShape shape_for_export(const GgufFile& lora, const GgufFile* base) {
    ModelShape shape;
    shape.architecture = lora.string("general.architecture");
    check_architecture(lora.path().string(), shape.architecture);
    const auto heads = lora.optional_u32("spool.base.head_count");
    const auto kv_heads = lora.optional_u32("spool.base.head_count_kv");
    if (heads && kv_heads && *heads > 0 && *kv_heads > 0) {
        shape.heads = *heads;
        shape.kv_heads = *kv_heads;
    } else if (base != nullptr) {
        const ModelShape of_base = model_shape(*base);
        if (of_base.architecture != shape.architecture) {
            fail(ErrorCode::incompatible, "{}: architecture is '{}', but that of the base model {} is '{}'",
                 lora.path().string(), shape.architecture, base->path().string(), of_base.architecture);
        }
        shape = of_base;
    } else if (rope_heads({.architecture = shape.architecture, .heads = 1, .kv_heads = 1}, "attn_q") != 0) {
        fail(ErrorCode::invalid_argument,
             "{}: does not state its model's head counts, which the order of q's and k's "
             "rows depends on; give the base model with --base",
             lora.path().string());
    }
    return shape;
}

/// An adapter's two files; `source` is either the weights or the folder of both.
struct PeftFiles {
    explicit PeftFiles(const std::filesystem::path& source)
        : weights(std::filesystem::is_directory(source) ? source / weights_name : source),
          config(read_peft_config(weights.path().parent_path() / config_name)) {}

    SafetensorsFile weights;
    PeftConfig config;
};

} // namespace

void peft_to_gguf(const std::filesystem::path& source, const GgufFile& base,
                  const std::filesystem::path& destination, std::optional<ggml_type> type) {
    const PeftFiles files(source);
    const std::string name = files.weights.path().string();
    const ModelShape shape = model_shape(base);
    const BaseIdentity identity = base_identity(base);

    GgufWriter writer;
    set_lora_keys(writer, identity, static_cast<float>(files.config.alpha), shape.heads, shape.kv_heads);

    Pairs pairs;
    for (const TensorView& tensor : files.weights.tensors()) {
        const Factor factor = parse_peft_name(name, tensor.name);
        pairs.add(name, factor);
        check_shape(name, tensor, factor, files.config.rank, base);
        RowOrder order;
        if (const uint32_t heads = rope_heads(shape, factor.module.gguf); factor.is_b && heads != 0) {
            check_heads(name, tensor.name, tensor.shape[0], heads);
            order = rows_from_hugging_face(tensor.shape[0], heads);
        }
        const ggml_type stored = type.value_or(own_type(name, tensor));
        writer.add(gguf_name(factor), stored, {tensor.shape[1], tensor.shape[0]},
                   stream_rows(name + ": tensor '" + tensor.name + "'", tensor, stored, std::move(order)));
    }
    pairs.check(name);
    writer.write(destination);
}

void gguf_to_peft(const std::filesystem::path& source, const GgufFile* base,
                  const std::filesystem::path& destination) {
    const GgufFile lora(source);
    const std::string name = source.string();
    check_is_lora(lora);
    const ModelShape shape = shape_for_export(lora, base);

    Pairs pairs;
    std::optional<int64_t> rank;
    std::set<std::string> modules;
    std::vector<std::vector<std::byte>> reordered; // owns what the views of q's and k's B point to
    std::vector<TensorView> views;
    for (const GgufTensor& tensor : lora.tensors()) {
        const Factor factor = parse_gguf_name(name, tensor.name);
        pairs.add(name, factor);
        if (tensor.ne.size() != 2 || (rank && *rank != tensor.ne[factor.is_b ? 0 : 1])) {
            fail(ErrorCode::unsupported,
                 "{}: tensor '{}' has ne {}, expected two dimensions and one rank for all", name, tensor.name,
                 shape_string(tensor.ne));
        }
        rank = tensor.ne[factor.is_b ? 0 : 1];
        TensorView view = {.name = peft_name(factor),
                           .dtype = dtype_of(name, tensor),
                           .shape = {tensor.ne[1], tensor.ne[0]},
                           .data = tensor.data};
        if (const uint32_t heads = rope_heads(shape, factor.module.gguf); factor.is_b && heads != 0) {
            check_heads(name, tensor.name, tensor.ne[1], heads);
            reordered.push_back(gather_rows(view, rows_to_hugging_face(tensor.ne[1], heads)));
            view.data = reordered.back();
        }
        const auto module = factor.module.hugging_face;
        modules.emplace(module.substr(module.find('.') + 1));
        views.push_back(std::move(view));
    }
    pairs.check(name);

    std::ranges::sort(views, {}, &TensorView::name);
    std::filesystem::create_directories(destination);
    write_safetensors(destination / weights_name, views, {{"format", "pt"}});
    // llama.cpp takes alpha 0 as a scale of 1, which PEFT writes as alpha = r.
    const float alpha = lora.f32("adapter.lora.alpha");
    const PeftConfig config = {.rank = static_cast<uint32_t>(rank.value_or(0)),
                               .alpha = alpha == 0 ? static_cast<double>(rank.value_or(0))
                                                   : static_cast<double>(alpha)};
    write_peft_config(destination / config_name, config, lora.optional_string("spool.base.name").value_or(""),
                      {modules.begin(), modules.end()});
}

void check_peft(const std::filesystem::path& source) {
    const PeftFiles files(source);
    const std::string name = files.weights.path().string();
    Pairs pairs;
    for (const TensorView& tensor : files.weights.tensors()) {
        pairs.add(name, parse_peft_name(name, tensor.name));
    }
    pairs.check(name);
}

void check_lora(const std::filesystem::path& source) {
    const GgufFile lora(source);
    check_is_lora(lora);
    Pairs pairs;
    for (const GgufTensor& tensor : lora.tensors()) {
        pairs.add(source.string(), parse_gguf_name(source.string(), tensor.name));
    }
    pairs.check(source.string());
}

} // namespace spool
