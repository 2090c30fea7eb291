// What a file or folder is, told from its content and never from its name alone.
#pragma once

#include <filesystem>
#include <string_view>

namespace spool {

enum class SourceKind {
    gguf_model,
    gguf_pooler,        ///< pooler.gguf
    gguf_lora,          ///< lora.gguf, or any llama.cpp LoRA adapter
    gguf_slots,         ///< slots.gguf
    gguf_session,       ///< a session saved by --session
    pooler_safetensors, ///< upstream's pooler, its matrices float or MLX 4-bit
    pooler_torch,       ///< the same as torch.save writes it
    peft_adapter,       ///< adapter_model.safetensors, or the folder that holds it
    hf_model,           ///< a Hugging Face model folder
    mlx_model,          ///< the same with MLX-quantised weights
    upstream_bundle,    ///< a folder with a pooler in any upstream form, and perhaps an adapter
    bundle,             ///< a folder with bundle.json
    other_safetensors,  ///< readable, but nothing spool converts
    other_torch
};

/// "pooler.gguf", "PEFT adapter", ...: as messages and `spool inspect` name it.
std::string_view to_string(SourceKind kind);

/// Throws Error{not_found} when nothing is there, Error{bad_file} when the content is of no known kind, is
/// damaged, or contradicts the file's extension (a .safetensors that holds GGUF).
SourceKind detect_source(const std::filesystem::path& path);

/// The pooler file of an upstream folder: pooler.safetensors, pooler.pt, pooler_4bit.safetensors, in this
/// order of preference; empty when there is none.
std::filesystem::path find_upstream_pooler(const std::filesystem::path& folder);

} // namespace spool
