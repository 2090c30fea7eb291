#include "convert/hf_config.h"

#include <array>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace spool {

namespace {

constexpr double default_rope_base = 10000.0;

[[noreturn]] void refuse(const JsonFields& config, std::string_view field, std::string_view expected) {
    fail(ErrorCode::unsupported, "{}: field '{}' is {}, which spool cannot convert; expected {}",
         config.source(), field, config.json().at(std::string(field)).dump(), expected);
}

void require_absent_or(const JsonFields& config, std::string_view field, const JsonValue& accepted) {
    if (const JsonValue* value = config.find(field); value != nullptr && *value != accepted) {
        refuse(config, field, "no such field or " + accepted.dump());
    }
}

std::string architecture(const JsonFields& config) {
    const JsonValue* list = config.find("architectures");
    if (list == nullptr || !list->is_array() || list->size() != 1 || !list->front().is_string()) {
        fail(ErrorCode::bad_file, "{}: field 'architectures' is not a list of one name", config.source());
    }
    const auto name = list->front().get<std::string>();
    if (name == "LlamaForCausalLM") {
        return "llama";
    }
    if (name == "Qwen2ForCausalLM") {
        return "qwen2";
    }
    refuse(config, "architectures", "LlamaForCausalLM, Qwen2ForCausalLM or BertModel");
}

void refuse_variants(const JsonFields& config) {
    require_absent_or(config, "hidden_act", "silu");
    require_absent_or(config, "mlp_bias", false);
    require_absent_or(config, "use_sliding_window", false);
    require_absent_or(config, "rope_interleaved", false);
    require_absent_or(config, "is_causal", true);
    require_absent_or(config, "partial_rotary_factor", 1.0);
    if (config.find("quantization_config") != nullptr && config.find("quantization") == nullptr) {
        refuse(config, "quantization_config", "unquantised weights, or MLX affine 4-bit");
    }
    // Qwen2 states a window it does not use; elsewhere a stated window is used.
    if (config.find("sliding_window") != nullptr && config.find("use_sliding_window") == nullptr) {
        refuse(config, "sliding_window", "full attention");
    }
    if (const JsonValue* layers = config.find("layer_types"); layers != nullptr) {
        for (const JsonValue& layer : *layers) {
            if (layer != "full_attention") {
                refuse(config, "layer_types", "full_attention in every layer");
            }
        }
    }
}

/// `scaling` is rope_scaling, or rope_parameters as newer configs write it.
std::optional<Llama3Rope> parse_rope(const JsonFields& scaling) {
    const auto type =
        scaling.optional_string("rope_type").value_or(scaling.optional_string("type").value_or("default"));
    if (type == "default") {
        return std::nullopt;
    }
    if (type != "llama3") {
        fail(ErrorCode::unsupported,
             "{}: field 'rope_type' is '{}', which spool cannot convert; expected 'default' or "
             "'llama3'",
             scaling.source(), type);
    }
    const Llama3Rope rope = {.factor = scaling.number("factor"),
                             .low_freq_factor = scaling.number("low_freq_factor"),
                             .high_freq_factor = scaling.number("high_freq_factor"),
                             .original_context = scaling.u32("original_max_position_embeddings")};
    if (rope.factor <= 0 || rope.low_freq_factor <= 0 || rope.high_freq_factor <= rope.low_freq_factor) {
        fail(ErrorCode::bad_file,
             "{}: 'factor', 'low_freq_factor' and 'high_freq_factor' are {}, {} and {}, expected "
             "all above 0 and the last the largest of the two",
             scaling.source(), rope.factor, rope.low_freq_factor, rope.high_freq_factor);
    }
    return rope;
}

void parse_positions(const JsonFields& config, HfConfig& result) {
    const auto parameters = config.optional_object("rope_parameters");
    const auto scaling = parameters ? parameters : config.optional_object("rope_scaling");
    const auto nested = parameters ? parameters->optional_number("rope_theta") : std::nullopt;
    result.rope_base = config.optional_number("rope_theta").value_or(nested.value_or(default_rope_base));
    if (scaling) {
        result.llama3_rope = parse_rope(*scaling);
    }
}

uint32_t parse_mlx(const JsonFields& quantization) {
    const auto bits = quantization.u32("bits");
    const auto mode = quantization.optional_string("mode").value_or("affine");
    if (bits != 4 || mode != "affine") {
        fail(ErrorCode::unsupported, "{}: {} bits, mode '{}'; spool reads MLX affine 4-bit",
             quantization.source(), bits, mode);
    }
    for (const auto& [key, value] : quantization.json().items()) {
        if (value.is_object() && quantization.object(key).optional_u32("bits").value_or(bits) != bits) {
            fail(ErrorCode::unsupported,
                 "{}: '{}' is quantised to other than {} bits; spool reads MLX affine 4-bit",
                 quantization.source(), key, bits);
        }
    }
    const auto group = quantization.u32("group_size");
    if (group == 0 || group % 32 != 0) {
        fail(ErrorCode::unsupported, "{}: field 'group_size' is {}, expected a multiple of 32",
             quantization.source(), group);
    }
    return group;
}

void check_dimensions(const JsonFields& config, const HfConfig& result) {
    constexpr uint32_t limit = 1 << 24;
    const std::array<std::pair<std::string_view, uint32_t>, 7> fields = {
        {{"num_hidden_layers", result.shape.layers},
         {"hidden_size", result.shape.hidden},
         {"num_attention_heads", result.shape.heads},
         {"num_key_value_heads", result.shape.kv_heads},
         {"intermediate_size", result.ffn},
         {"vocab_size", result.vocab},
         {"max_position_embeddings", result.context}}};
    for (const auto& [name, value] : fields) {
        if (value == 0 || value > limit) {
            fail(ErrorCode::bad_file, "{}: field '{}' is {}, expected 1 to {}", config.source(), name, value,
                 limit);
        }
    }
    if (result.head_size == 0 || result.head_size % 2 != 0) {
        fail(ErrorCode::bad_file,
             "{}: heads of size {}, expected an even size (fields 'head_dim', 'hidden_size', "
             "'num_attention_heads')",
             config.source(), result.head_size);
    }
}

} // namespace

HfConfig parse_hf_config(const JsonFields& config) {
    HfConfig result;
    result.shape.architecture = architecture(config);
    refuse_variants(config);
    result.shape.layers = config.u32("num_hidden_layers");
    result.shape.hidden = config.u32("hidden_size");
    result.shape.heads = config.u32("num_attention_heads");
    result.shape.kv_heads = config.optional_u32("num_key_value_heads").value_or(result.shape.heads);
    result.ffn = config.u32("intermediate_size");
    result.vocab = config.u32("vocab_size");
    result.context = config.u32("max_position_embeddings");
    result.rms_eps = config.number("rms_norm_eps");
    result.tied = config.optional_flag("tie_word_embeddings").value_or(false);
    const auto head_size = config.optional_u32("head_dim");
    result.states_head_size = head_size.has_value() || result.shape.architecture == "llama";
    result.head_size =
        head_size.value_or(result.shape.heads == 0 ? 0 : result.shape.hidden / result.shape.heads);
    parse_positions(config, result);
    if (const auto quantization = config.optional_object("quantization")) {
        result.mlx_group = parse_mlx(*quantization);
    }
    check_dimensions(config, result);
    return result;
}

std::vector<float> rope_factors(const Llama3Rope& rope, double base, uint32_t head_size) {
    const double low_wavelength = rope.original_context / rope.low_freq_factor;
    const double high_wavelength = rope.original_context / rope.high_freq_factor;
    std::vector<float> factors;
    for (uint32_t i = 0; i < head_size; i += 2) {
        const double wavelength = 2 * std::numbers::pi * std::pow(base, static_cast<double>(i) / head_size);
        double factor = 1.0;
        if (wavelength > low_wavelength) {
            factor = rope.factor;
        } else if (wavelength >= high_wavelength) {
            const double smooth = (rope.original_context / wavelength - rope.low_freq_factor) /
                                  (rope.high_freq_factor - rope.low_freq_factor);
            factor = 1 / ((1 - smooth) / rope.factor + smooth);
        }
        factors.push_back(static_cast<float>(factor));
    }
    return factors;
}

} // namespace spool
