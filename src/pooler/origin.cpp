#include "pooler/origin.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace spool {

std::string_view to_string(Layout layout) { return layout == Layout::rebuild ? "rebuild" : "carry"; }

Layout layout_from_string(std::string_view text) {
    for (const Layout layout : {Layout::rebuild, Layout::carry}) {
        if (text == to_string(layout)) {
            return layout;
        }
    }
    fail(ErrorCode::invalid_argument, "the layout '{}' is not known, expected 'rebuild' or 'carry'", text);
}

void set_origin(GgufWriter& writer, const BaseIdentity& base, const TrainedSettings& trained) {
    for (const auto& [key, text] :
         {std::pair("architecture", base.architecture), std::pair("name", base.name),
          std::pair("vocab_sha256", base.vocab_sha256)}) {
        if (!text.empty()) {
            writer.set(fmt::format("spool.base.{}", key), text);
        }
    }
    for (const auto& [key, value] :
         {std::pair("rw", trained.rw), std::pair("chunk", trained.chunk),
          std::pair("max_distant", trained.max_distant), std::pair("max_slots", trained.max_slots),
          std::pair("max_position", trained.max_position)}) {
        if (value != 0) {
            writer.set(fmt::format("spool.trained.{}", key), value);
        }
    }
    writer.set("spool.trained.layout", std::string(to_string(trained.layout)));
}

BaseIdentity read_base(const GgufFile& file) {
    return {.architecture = file.optional_string("spool.base.architecture").value_or(""),
            .name = file.optional_string("spool.base.name").value_or(""),
            .vocab_sha256 = file.optional_string("spool.base.vocab_sha256").value_or("")};
}

TrainedSettings read_trained(const GgufFile& file) {
    TrainedSettings trained{.rw = file.optional_u32("spool.trained.rw").value_or(0),
                            .chunk = file.optional_u32("spool.trained.chunk").value_or(0),
                            .max_distant = file.optional_u32("spool.trained.max_distant").value_or(0),
                            .max_slots = file.optional_u32("spool.trained.max_slots").value_or(0),
                            .max_position = file.optional_u32("spool.trained.max_position").value_or(0)};
    if (const auto layout = file.optional_string("spool.trained.layout")) {
        if (*layout != "rebuild" && *layout != "carry") {
            fail(ErrorCode::bad_file, "{}: key 'spool.trained.layout' is '{}', expected 'rebuild' or 'carry'",
                 file.path().string(), *layout);
        }
        trained.layout = layout_from_string(*layout);
    }
    return trained;
}

} // namespace spool
