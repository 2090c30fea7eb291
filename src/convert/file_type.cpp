#include "convert/file_type.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/error.h"

namespace spool {

namespace {

struct Known {
    ggml_type type;
    uint32_t number;
};

constexpr std::array<Known, 8> known = {{{GGML_TYPE_F32, 0},
                                         {GGML_TYPE_F16, 1},
                                         {GGML_TYPE_BF16, 32},
                                         {GGML_TYPE_Q8_0, 7},
                                         {GGML_TYPE_Q4_0, 2},
                                         {GGML_TYPE_Q4_1, 3},
                                         {GGML_TYPE_Q5_0, 8},
                                         {GGML_TYPE_Q5_1, 9}}};

std::string accepted() {
    std::string text;
    for (const Known& entry : known) {
        text += (text.empty() ? "" : ", ") + std::string(ggml_type_name(entry.type));
    }
    return text;
}

} // namespace

uint32_t file_type(ggml_type type) {
    const auto it = std::ranges::find(known, type, &Known::type);
    if (it == known.end()) {
        fail(ErrorCode::invalid_argument, "type {} cannot be written, only {}", ggml_type_name(type),
             accepted());
    }
    return it->number;
}

ggml_type tensor_type_from_string(const std::string& text) {
    const auto it =
        std::ranges::find_if(known, [&](const Known& entry) { return text == ggml_type_name(entry.type); });
    if (it == known.end()) {
        fail(ErrorCode::invalid_argument, "'{}' is no type to convert to, expected one of {}", text,
             accepted());
    }
    return it->type;
}

} // namespace spool
