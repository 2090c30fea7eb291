#include "convert/peft_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/json_file.h"

namespace spool {

namespace {

/// True, a non-empty string, list or object: the feature is on.
bool is_set(const JsonValue& value) {
    if (value.is_boolean()) {
        return value.get<bool>();
    }
    return !value.is_null() && !(value.is_structured() && value.empty()) &&
           !(value.is_string() && value.get<std::string>().empty());
}

[[noreturn]] void refuse(const JsonFields& config, std::string_view field, const JsonValue& value,
                         std::string_view advice) {
    fail(ErrorCode::unsupported, "{}: field '{}' is {}, which lora.gguf cannot express; {}", config.source(),
         field, value.dump(), advice);
}

void refuse_features(const JsonFields& config) {
    constexpr std::string_view advice = "merge the adapter into the model and convert that instead";
    constexpr std::array<std::string_view, 9> fields = {
        "lora_bias",         "modules_to_save",         "rank_pattern",
        "alpha_pattern",     "fan_in_fan_out",          "layer_replication",
        "target_parameters", "trainable_token_indices", "alora_invocation_tokens"};
    for (const auto& [key, value] : config.json().items()) {
        const bool named = std::ranges::find(fields, key) != fields.end();
        if ((named || key.starts_with("use_")) && is_set(value)) {
            refuse(config, key, value, advice);
        }
    }
    if (const JsonValue* bias = config.find("bias"); bias != nullptr && *bias != "none") {
        refuse(config, "bias", *bias, advice);
    }
}

/// These start from A and B random or zero and leave the base weights alone; all others may have changed
/// them.
void check_initialisation(const JsonFields& config) {
    constexpr std::array<std::string_view, 3> harmless = {"gaussian", "orthogonal", "eva"};
    const JsonValue* value = config.find("init_lora_weights");
    if (value == nullptr || value->is_boolean()) {
        return;
    }
    if (!value->is_string() || std::ranges::find(harmless, value->get<std::string>()) == harmless.end()) {
        refuse(config, "init_lora_weights", *value,
               "it changes the base weights: save the adapter with path_initial_model_for_weight_conversion");
    }
}

} // namespace

PeftConfig read_peft_config(const std::filesystem::path& path) {
    const JsonFields config = read_json_file(path);
    if (const auto type = config.string("peft_type"); type != "LORA") {
        fail(ErrorCode::unsupported, "{}: field 'peft_type' is '{}', expected 'LORA'", config.source(), type);
    }
    refuse_features(config);
    check_initialisation(config);
    const PeftConfig result = {.rank = config.u32("r"), .alpha = config.number("lora_alpha")};
    if (result.rank == 0 || !std::isfinite(result.alpha) || result.alpha <= 0) {
        fail(ErrorCode::bad_file, "{}: fields 'r' and 'lora_alpha' are {} and {}, expected both above 0",
             config.source(), result.rank, result.alpha);
    }
    return result;
}

void write_peft_config(const std::filesystem::path& path, const PeftConfig& config,
                       const std::string& base_name, const std::vector<std::string>& target_modules) {
    const bool whole = config.alpha == std::floor(config.alpha);
    const Json alpha = whole ? Json(static_cast<int64_t>(config.alpha)) : Json(config.alpha);
    const Json json = {{"peft_type", "LORA"},
                       {"task_type", "CAUSAL_LM"},
                       {"base_model_name_or_path", base_name},
                       {"r", config.rank},
                       {"lora_alpha", alpha},
                       {"lora_dropout", 0.0},
                       {"bias", "none"},
                       {"target_modules", target_modules},
                       {"use_rslora", false},
                       {"use_dora", false},
                       {"fan_in_fan_out", false},
                       {"inference_mode", true}};
    write_text(path, json.dump(1) + "\n");
}

} // namespace spool
