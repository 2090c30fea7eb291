#include "convert/architecture.h"

#include <array>

#include "core/error.h"
#include "formats/model_identity.h"

namespace spool {

namespace {

constexpr std::string_view llama = "llama";
constexpr std::string_view qwen2 = "qwen2";

} // namespace

std::span<const BlockModule> block_modules() {
    static constexpr std::array<BlockModule, 7> modules = {{{"self_attn.q_proj", "attn_q"},
                                                            {"self_attn.k_proj", "attn_k"},
                                                            {"self_attn.v_proj", "attn_v"},
                                                            {"self_attn.o_proj", "attn_output"},
                                                            {"mlp.gate_proj", "ffn_gate"},
                                                            {"mlp.up_proj", "ffn_up"},
                                                            {"mlp.down_proj", "ffn_down"}}};
    return modules;
}

uint32_t rope_heads(const ModelShape& shape, std::string_view module) {
    if (shape.architecture != llama) {
        return 0;
    }
    if (module == "attn_q") {
        return shape.heads;
    }
    return module == "attn_k" ? shape.kv_heads : 0;
}

void check_architecture(const std::string& source, std::string_view architecture) {
    if (architecture != llama && architecture != qwen2) {
        fail(ErrorCode::unsupported, "{}: architecture '{}' cannot be converted, only '{}' and '{}'", source,
             architecture, llama, qwen2);
    }
}

ModelShape model_shape(const GgufFile& model) {
    ModelShape shape;
    shape.architecture = model.string("general.architecture");
    check_architecture(model.path().string(), shape.architecture);
    const auto key = [&](std::string_view name) { return shape.architecture + "." + std::string(name); };
    shape.layers = model.u32(key("block_count"));
    shape.hidden = model.u32(key("embedding_length"));
    shape.heads = model.u32(key("attention.head_count"));
    shape.kv_heads = model.optional_u32(key("attention.head_count_kv")).value_or(shape.heads);
    if (shape.heads == 0 || shape.kv_heads == 0) {
        fail(ErrorCode::bad_file, "{}: {} is 0", model.path().string(), key("attention.head_count"));
    }
    return shape;
}

} // namespace spool
