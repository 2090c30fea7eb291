#include "memory/slots_file.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"

namespace spool {

namespace {

constexpr uint32_t format_version = 1;
constexpr const char* tensor_name = "slots";
constexpr int64_t most_slots = 256;
constexpr int64_t most_width = 1 << 16;

} // namespace

SlotsFile read_slots(const std::filesystem::path& path) {
    const GgufFile file(path);
    const std::string source = path.string();
    if (const std::string found = file.string("general.architecture"); found != slots_architecture) {
        fail(ErrorCode::bad_file, "{}: key 'general.architecture' is '{}', expected '{}'", source, found,
             slots_architecture);
    }
    if (const uint32_t version = file.u32("spool.version"); version != format_version) {
        fail(ErrorCode::bad_file,
             "{}: key 'spool.version' is {}, expected {}; use the release of spool that wrote it", source,
             version, format_version);
    }
    const GgufTensor* tensor = file.find_tensor(tensor_name);
    if (tensor == nullptr || file.tensors().size() != 1) {
        fail(ErrorCode::bad_file, "{}: holds {} tensors, expected one, '{}'", source, file.tensors().size(),
             tensor_name);
    }
    if (tensor->type != GGML_TYPE_F32 || tensor->ne.size() != 2 || tensor->ne[0] < 1 ||
        tensor->ne[0] > most_width || tensor->ne[1] < 1 || tensor->ne[1] > most_slots) {
        fail(ErrorCode::bad_file, "{}: tensor '{}' is not f32 of 1 to {} rows and at most {} columns", source,
             tensor_name, most_slots, most_width);
    }
    SlotsFile slots{.width = static_cast<uint32_t>(tensor->ne[0]),
                    .count = static_cast<uint32_t>(tensor->ne[1]),
                    .vectors = to_float(*tensor),
                    .base = read_base(file),
                    .trained = read_trained(file)};
    if (!std::ranges::all_of(slots.vectors, [](float value) { return std::isfinite(value); })) {
        fail(ErrorCode::bad_file, "{}: tensor '{}' holds values that are not finite", source, tensor_name);
    }
    return slots;
}

void write_slots(const std::filesystem::path& path, const SlotsFile& slots) {
    GgufWriter writer;
    writer.set("general.architecture", std::string(slots_architecture));
    writer.set("spool.version", format_version);
    set_origin(writer, slots.base, slots.trained);
    writer.add(tensor_name, GGML_TYPE_F32, {int64_t{slots.width}, int64_t{slots.count}},
               std::as_bytes(std::span(slots.vectors)));
    writer.write(path);
}

} // namespace spool
