// The metadata of lora.gguf, llama.cpp's adapter format.
#pragma once

#include <cstdint>

#include "formats/gguf.h"
#include "formats/model_identity.h"

namespace spool {

/// Sets general.architecture, general.type, adapter.type, adapter.lora.alpha, and
/// spool.base.{architecture,name, vocab_sha256,head_count,head_count_kv}, which llama.cpp ignores: with the
/// head counts the file can be turned into a PEFT adapter without the model.
void set_lora_keys(GgufWriter& writer, const BaseIdentity& base, float alpha, uint32_t heads,
                   uint32_t kv_heads);

} // namespace spool
