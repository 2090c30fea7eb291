#include "convert/model_file.h"

#include <optional>

#include "convert/file_type.h"
#include "core/log.h"
#include "core/progress.h"

namespace spool {

namespace {

std::string folder_name(const std::filesystem::path& folder) {
    const auto path = std::filesystem::absolute(folder).lexically_normal();
    return (path.has_filename() ? path : path.parent_path()).filename().string();
}

} // namespace

void set_general_keys(GgufWriter& writer, const std::string& architecture,
                      const std::filesystem::path& folder, const ModelConversionOptions& options,
                      ggml_type type) {
    writer.set("general.architecture", architecture);
    writer.set("general.type", std::string("model"));
    writer.set("general.name", options.name.empty() ? folder_name(folder) : options.name);
    writer.set("general.file_type", file_type(type));
    writer.set("general.quantization_version", uint32_t{GGML_QNT_VERSION});
}

void write_with_progress(const GgufWriter& writer, const std::filesystem::path& destination) {
    constexpr int mebibyte = 20;
    std::optional<Progress> progress;
    writer.write(destination, [&](size_t written, size_t total) {
        if (!progress) {
            progress.emplace("converting, MiB", (total >> mebibyte) + 1);
        }
        progress->update(written >> mebibyte);
    });
}

void warn(const std::string& source, const ModelReport& report) {
    if (report.mlx_inexact > 0) {
        log_warning(
            "{}: {} of {} 4-bit matrices have scales that f16 cannot hold exactly; they are stored as q8_0",
            source, report.mlx_inexact, report.mlx_inexact + report.mlx_exact);
    }
    if (report.unaligned > 0) {
        log_warning(
            "{}: {} matrices have rows that do not divide into the type's blocks; they are stored as f16",
            source, report.unaligned);
    }
}

} // namespace spool
