// What files of a bundle say of their origin: the model they were trained for and the settings.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/gguf.h"
#include "formats/model_identity.h"

namespace spool {

/// The KV layout a soft prompt was trained for; see docs/design of the strategies.
enum class Layout { rebuild, carry };

std::string_view to_string(Layout layout);
/// Throws Error{invalid_argument}, naming the text and the two accepted values.
Layout layout_from_string(std::string_view text);

/// The settings a pooler or slots were trained with; 0 means not recorded.
struct TrainedSettings {
    uint32_t rw = 0;
    uint32_t chunk = 0;
    uint32_t max_distant = 0;
    uint32_t max_slots = 0;
    uint32_t max_position = 0;
    Layout layout = Layout::rebuild;

    bool operator==(const TrainedSettings&) const = default;
};

/// Writes spool.base.* and spool.trained.* (docs/formats.md), what is recorded of them.
void set_origin(GgufWriter& writer, const BaseIdentity& base, const TrainedSettings& trained);
/// Reads them; what is missing stays empty. Throws Error{bad_file} for an unknown layout.
BaseIdentity read_base(const GgufFile& file);
TrainedSettings read_trained(const GgufFile& file);

} // namespace spool
