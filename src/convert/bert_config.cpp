#include "convert/bert_config.h"

#include <algorithm>
#include <array>
#include <optional>

#include <llama.h>

#include "core/error.h"
#include "core/file.h"

namespace spool {

namespace {

std::optional<JsonFields> read_if_there(const std::filesystem::path& path) {
    return std::filesystem::exists(path) ? std::optional(read_json_file(path)) : std::nullopt;
}

void refuse_unless(const JsonFields& config, std::string_view field, const std::vector<JsonValue>& accepted) {
    const JsonValue* value = config.find(field);
    if (value != nullptr && std::ranges::find(accepted, *value) == accepted.end()) {
        fail(ErrorCode::unsupported, "{}: field '{}' is {}, which spool cannot convert; expected {}",
             config.source(), field, value->dump(), JsonValue(accepted).dump());
    }
}

void refuse_variants(const JsonFields& config) {
    refuse_unless(config, "hidden_act", {"gelu", "gelu_new", "gelu_pytorch_tanh"});
    refuse_unless(config, "position_embedding_type", {"absolute"});
    refuse_unless(config, "is_decoder", {false});
    refuse_unless(config, "add_cross_attention", {false});
    if (const JsonValue* quantized = config.find("quantization_config"); quantized != nullptr) {
        fail(ErrorCode::unsupported, "{}: field 'quantization_config' is {}; expected unquantised weights",
             config.source(), quantized->dump());
    }
}

/// The folder of the pooling, as modules.json lists it. Throws Error{unsupported} for other modules than an
/// encoder, a pooling and a normalisation.
std::filesystem::path pooling_folder(const std::filesystem::path& folder) {
    const auto path = folder / "modules.json";
    std::filesystem::path found = folder / "1_Pooling";
    if (!std::filesystem::exists(path)) {
        return found;
    }
    // A list, where read_json_file() wants an object.
    const std::string text = read_text(path);
    const JsonValue modules = JsonValue::parse(text, nullptr, false);
    if (!modules.is_array()) {
        fail(ErrorCode::bad_file, "{}: is no list of modules", path.string());
    }
    for (const JsonValue& json : modules) {
        const JsonFields module(path.string(), json);
        const auto type = module.string("type");
        if (type.ends_with("Pooling")) {
            const auto name = std::filesystem::path(module.string("path")).filename();
            found = folder / name;
        } else if (!type.ends_with("Transformer") && !type.ends_with("Normalize")) {
            fail(ErrorCode::unsupported,
                 "{}: module '{}' cannot be converted; expected an encoder, a pooling and a normalisation",
                 path.string(), type);
        }
    }
    return found;
}

uint32_t parse_pooling(const std::filesystem::path& folder) {
    const auto path = pooling_folder(folder) / "config.json";
    const auto pooling = read_if_there(path);
    if (!pooling) {
        return LLAMA_POOLING_TYPE_MEAN;
    }
    struct Mode {
        std::string_view flag; ///< in older files
        std::string_view name; ///< of "pooling_mode" in newer ones
        std::optional<uint32_t> number;
    };
    const std::array<Mode, 6> modes = {
        {{"pooling_mode_mean_tokens", "mean", LLAMA_POOLING_TYPE_MEAN},
         {"pooling_mode_cls_token", "cls", LLAMA_POOLING_TYPE_CLS},
         {"pooling_mode_lasttoken", "lasttoken", LLAMA_POOLING_TYPE_LAST},
         {"pooling_mode_max_tokens", "max", std::nullopt},
         {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", std::nullopt},
         {"pooling_mode_weightedmean_tokens", "weightedmean", std::nullopt}}};
    const auto named = pooling->optional_string("pooling_mode");
    std::vector<const Mode*> chosen;
    for (const Mode& mode : modes) {
        if (named ? *named == mode.name : pooling->optional_flag(mode.flag).value_or(false)) {
            chosen.push_back(&mode);
        }
    }
    const std::optional<uint32_t> number = chosen.size() == 1 ? chosen.front()->number : std::nullopt;
    if (!number) {
        fail(ErrorCode::unsupported,
             "{}: pools in a way that cannot be converted; expected one of mean, cls and lasttoken",
             path.string());
    }
    return *number;
}

/// Where sentence-transformers cuts a text: its own setting, else the tokenizer's.
uint32_t parse_max_tokens(const std::filesystem::path& folder, uint32_t positions) {
    std::optional<double> limit;
    if (const auto sentence = read_if_there(folder / "sentence_bert_config.json")) {
        limit = sentence->optional_number("max_seq_length");
    }
    if (const auto tokenizer = read_if_there(folder / "tokenizer_config.json"); tokenizer && !limit) {
        limit = tokenizer->optional_number("model_max_length"); // 1e30 where there is no limit
    }
    constexpr double fewest = 3; // [CLS], one token, [SEP]
    const double tokens = std::min<double>(limit.value_or(positions), positions);
    if (!(tokens >= fewest)) {
        fail(ErrorCode::bad_file, "{}: a text may have {} tokens, expected 3 or more", folder.string(),
             tokens);
    }
    return static_cast<uint32_t>(tokens);
}

std::string parse_query_prefix(const std::filesystem::path& folder) {
    const auto settings = read_if_there(folder / "config_sentence_transformers.json");
    const auto prompts = settings ? settings->optional_object("prompts") : std::nullopt;
    return prompts ? prompts->optional_string("query").value_or("") : "";
}

void check_dimensions(const JsonFields& json, const BertConfig& config) {
    constexpr uint32_t limit = 1 << 24;
    const std::array<std::pair<std::string_view, uint32_t>, 7> fields = {
        {{"num_hidden_layers", config.layers},
         {"hidden_size", config.hidden},
         {"num_attention_heads", config.heads},
         {"intermediate_size", config.ffn},
         {"vocab_size", config.vocab},
         {"max_position_embeddings", config.positions},
         {"type_vocab_size", config.token_types}}};
    for (const auto& [name, value] : fields) {
        if (value == 0 || value > limit) {
            fail(ErrorCode::bad_file, "{}: field '{}' is {}, expected 1 to {}", json.source(), name, value,
                 limit);
        }
    }
    if (config.hidden % config.heads != 0) {
        fail(ErrorCode::bad_file,
             "{}: field 'hidden_size' is {}, expected a multiple of 'num_attention_heads', {}", json.source(),
             config.hidden, config.heads);
    }
}

} // namespace

bool is_bert(const JsonFields& config) {
    const JsonValue* list = config.find("architectures");
    return list != nullptr && list->is_array() && list->size() == 1 &&
           (list->front() == "BertModel" || list->front() == "BertForMaskedLM");
}

BertConfig parse_bert_config(const std::filesystem::path& folder, const JsonFields& config) {
    refuse_variants(config);
    constexpr double usual_eps = 1e-12;
    BertConfig result = {.layers = config.u32("num_hidden_layers"),
                         .hidden = config.u32("hidden_size"),
                         .heads = config.u32("num_attention_heads"),
                         .ffn = config.u32("intermediate_size"),
                         .vocab = config.u32("vocab_size"),
                         .positions = config.u32("max_position_embeddings"),
                         .token_types = config.optional_u32("type_vocab_size").value_or(2),
                         .norm_eps = config.optional_number("layer_norm_eps").value_or(usual_eps),
                         .query_prefix = parse_query_prefix(folder)};
    check_dimensions(config, result);
    result.pooling = parse_pooling(folder);
    result.max_tokens = parse_max_tokens(folder, result.positions);
    return result;
}

} // namespace spool
