#include "memory/bundle.h"

#include <array>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/json_file.h"

namespace spool {

namespace {

constexpr std::string_view format_name = "spool-bundle";
constexpr uint32_t format_version = 1;
constexpr std::string_view index_name = "bundle.json";
constexpr std::string_view pooler_name = "pooler.gguf";
constexpr std::string_view slots_name = "slots.gguf";
constexpr std::string_view lora_name = "lora.gguf";
constexpr std::string_view model_name = "model.gguf";

/// Throws unless the file at `path` is the one `entry` describes.
void check_file(const std::filesystem::path& path, const JsonFields& entry) {
    const double expected_size = entry.number("bytes");
    const std::string expected_hash = entry.string("sha256");
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
        fail(ErrorCode::not_found, "{}: missing, although {} names it; copy the whole bundle again",
             path.string(), index_name);
    }
    if (const auto size = std::filesystem::file_size(path); static_cast<double>(size) != expected_size) {
        fail(ErrorCode::bad_file, "{}: {} bytes, but {} states {}; copy the file again or rebuild the bundle",
             path.string(), size, index_name, expected_size);
    }
    if (const auto hash = sha256_file(path); hash != expected_hash) {
        fail(ErrorCode::bad_file,
             "{}: SHA-256 is {}, but {} states {}; the file was changed or damaged after the bundle was made",
             path.string(), hash, index_name, expected_hash);
    }
}

BaseIdentity parse_base(const JsonFields& base) {
    return {.architecture = base.optional_string("architecture").value_or(""),
            .name = base.optional_string("name").value_or(""),
            .vocab_sha256 = base.optional_string("vocab_sha256").value_or("")};
}

Layout parse_layout(const JsonFields& trained) {
    try {
        return layout_from_string(trained.string("layout"));
    } catch (const Error& error) {
        fail(ErrorCode::bad_file, "{}: field 'layout': {}", trained.source(), error.what());
    }
}

TrainedSettings parse_trained(const JsonFields& trained) {
    return {.rw = trained.optional_u32("rw").value_or(0),
            .chunk = trained.optional_u32("chunk").value_or(0),
            .max_distant = trained.optional_u32("max_distant").value_or(0),
            .max_slots = trained.optional_u32("max_slots").value_or(0),
            .max_position = trained.optional_u32("max_position").value_or(0),
            .layout = parse_layout(trained)};
}

void check_one(const Bundle& bundle, std::string_view what, const std::string& stated,
               const std::string& found) {
    if (!stated.empty() && stated != found) {
        fail(ErrorCode::incompatible,
             "{}: this bundle was trained for a model whose {} is '{}', but the loaded model's is '{}'; load "
             "{} "
             "or use a bundle made for this model",
             bundle.folder.string(), what, stated, found,
             bundle.base.name.empty() ? "that model" : "'" + bundle.base.name + "'");
    }
}

} // namespace

Bundle read_bundle(const std::filesystem::path& folder) {
    if (!std::filesystem::is_directory(folder)) {
        fail(ErrorCode::not_found, "{}: no such folder; a bundle is a folder that holds {}", folder.string(),
             index_name);
    }
    const JsonFields index = read_json_file(folder / index_name);
    if (const auto format = index.string("format"); format != format_name) {
        fail(ErrorCode::bad_file, "{}: field 'format' is '{}', expected '{}'", index.source(), format,
             format_name);
    }
    if (const auto version = index.u32("version"); version != format_version) {
        fail(ErrorCode::unsupported, "{}: version {}, but this build reads version {}; update spool",
             index.source(), version, format_version);
    }
    Bundle bundle;
    bundle.folder = folder;
    bundle.base = parse_base(index.object("base"));
    bundle.trained = parse_trained(index.object("trained"));
    if (const JsonValue* recovered = index.find("recovered")) {
        bundle.recovered = *recovered;
    }
    const JsonFields files = index.object("files");
    for (const auto& [name, entry] : files.json().items()) {
        const auto path = folder / name;
        if (name == pooler_name) {
            bundle.pooler = path;
        } else if (name == slots_name) {
            bundle.slots = path;
        } else if (name == lora_name) {
            bundle.lora = path;
        } else if (name == model_name) {
            bundle.model = path;
        } else {
            fail(ErrorCode::bad_file, "{}: field 'files' names '{}', expected only {}, {}, {} and {}",
                 index.source(), name, pooler_name, slots_name, lora_name, model_name);
        }
        check_file(path, files.object(name));
    }
    if (bundle.pooler.empty() && bundle.slots.empty()) {
        fail(ErrorCode::bad_file, "{}: field 'files' names neither {} nor {}", index.source(), pooler_name,
             slots_name);
    }
    return bundle;
}

void write_bundle(const Bundle& bundle) {
    Json files = Json::object();
    for (const std::string_view name : std::array{pooler_name, slots_name, lora_name, model_name}) {
        const auto path = bundle.folder / name;
        if (std::filesystem::exists(path)) {
            files[std::string(name)] = {{"bytes", std::filesystem::file_size(path)},
                                        {"sha256", sha256_file(path)}};
        }
    }
    if (!files.contains(pooler_name) && !files.contains(slots_name)) {
        fail(ErrorCode::not_found, "{}: holds neither {} nor {}; a bundle needs one of them",
             bundle.folder.string(), pooler_name, slots_name);
    }
    const Json index = {{"format", format_name},
                        {"version", format_version},
                        {"base",
                         {{"architecture", bundle.base.architecture},
                          {"name", bundle.base.name},
                          {"vocab_sha256", bundle.base.vocab_sha256}}},
                        {"trained",
                         {{"rw", bundle.trained.rw},
                          {"chunk", bundle.trained.chunk},
                          {"max_distant", bundle.trained.max_distant},
                          {"max_slots", bundle.trained.max_slots},
                          {"max_position", bundle.trained.max_position},
                          {"layout", to_string(bundle.trained.layout)}}},
                        {"files", files},
                        {"recovered", bundle.recovered}};
    write_text(bundle.folder / index_name, index.dump(2) + "\n");
}

void check_fits(const Bundle& bundle, const BaseIdentity& found) {
    check_one(bundle, "architecture", bundle.base.architecture, found.architecture);
    check_one(bundle, "vocabulary (SHA-256)", bundle.base.vocab_sha256, found.vocab_sha256);
}

} // namespace spool
