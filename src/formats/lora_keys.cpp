#include "formats/lora_keys.h"

namespace spool {

void set_lora_keys(GgufWriter& writer, const BaseIdentity& base, float alpha, uint32_t heads,
                   uint32_t kv_heads) {
    writer.set("general.architecture", base.architecture);
    writer.set("general.type", std::string("adapter"));
    writer.set("adapter.type", std::string("lora"));
    writer.set("adapter.lora.alpha", alpha);
    writer.set("spool.base.architecture", base.architecture);
    writer.set("spool.base.name", base.name);
    writer.set("spool.base.vocab_sha256", base.vocab_sha256);
    writer.set("spool.base.head_count", heads);
    writer.set("spool.base.head_count_kv", kv_heads);
}

} // namespace spool
