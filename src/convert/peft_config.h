// adapter_config.json of PEFT: what spool needs of it, and the refusal of what lora.gguf cannot express.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace spool {

struct PeftConfig {
    uint32_t rank = 0;
    double alpha = 0;
};

/// Throws Error{not_found|bad_file}, and Error{unsupported} naming file and field for features that would
/// change the result: use_rslora, use_dora, any other use_*, lora_bias, bias, modules_to_save, rank_pattern,
/// alpha_pattern, fan_in_fan_out, layer_replication, target_parameters, trainable_token_indices,
/// alora_invocation_tokens, and init_lora_weights of a kind that moved part of the base weights into the
/// adapter (PiSSA, OLoRA, CorDA, LoftQ).
PeftConfig read_peft_config(const std::filesystem::path& path);

void write_peft_config(const std::filesystem::path& path, const PeftConfig& config,
                       const std::string& base_name, const std::vector<std::string>& target_modules);

} // namespace spool
