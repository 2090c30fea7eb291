#include "convert/convert.h"

#include "convert/architecture.h"
#include "convert/bundle.h"
#include "convert/lora.h"
#include "convert/pooler.h"
#include "core/error.h"

namespace spool {

namespace {

constexpr std::string_view gguf_suffix = ".gguf";
constexpr std::string_view safetensors_suffix = ".safetensors";

/// One conversion: the arguments of convert(), and the files written so far.
class Conversion {
  public:
    Conversion(const std::filesystem::path& source, const std::filesystem::path& destination,
               const ConvertOptions& options)
        : source_(source), destination_(destination), options_(options) {
        report_.source = detect_source(source);
        if (options.base) {
            base_.emplace(*options.base);
        }
    }

    ConvertReport run() {
        switch (report_.source) {
        case SourceKind::pooler_safetensors:
        case SourceKind::pooler_torch:
            require_file(gguf_suffix);
            return write_pooler_file({.weights = import_pooler(source_, options_.heads),
                                      .base = base_ ? base_identity(*base_) : BaseIdentity{},
                                      .trained = options_.trained});
        case SourceKind::gguf_pooler:
            return from_pooler_gguf();
        case SourceKind::peft_adapter:
            require_file(gguf_suffix);
            peft_to_gguf(source_, base(), destination_, options_.type);
            return done({destination_});
        case SourceKind::gguf_lora:
            require_folder();
            gguf_to_peft(source_, base_ ? &*base_ : nullptr, destination_);
            return done({destination_ / "adapter_model.safetensors", destination_ / "adapter_config.json"});
        case SourceKind::upstream_bundle:
            return to_bundle();
        case SourceKind::bundle:
            require_folder();
            bundle_to_upstream(source_, base_ ? &*base_ : nullptr, destination_);
            return done({destination_});
        case SourceKind::hf_model:
        case SourceKind::mlx_model:
            require_file(gguf_suffix);
            report_.model = hugging_face_to_gguf(
                source_, destination_,
                {.type = options_.type, .tokenizer_from = options_.tokenizer_from, .name = options_.name});
            return done({destination_});
        case SourceKind::gguf_model:
            return from_model_gguf();
        default:
            fail(ErrorCode::invalid_argument,
                 "{}: a {} that is neither a pooler nor an adapter; to convert a model, give "
                 "its folder",
                 source_.string(), to_string(report_.source));
        }
    }

  private:
    void require_file(std::string_view suffix) const {
        if (destination_.extension() != suffix) {
            fail(ErrorCode::invalid_argument, "{}: a {} becomes a *{} file; give such a destination",
                 destination_.string(), to_string(report_.source), suffix);
        }
        std::error_code error;
        if (std::filesystem::equivalent(source_, destination_, error)) {
            fail(ErrorCode::invalid_argument, "{}: source and destination are the same file",
                 source_.string());
        }
    }

    void require_folder() const {
        const bool file = std::filesystem::exists(destination_) ? !std::filesystem::is_directory(destination_)
                                                                : destination_.has_extension();
        if (file) {
            fail(ErrorCode::invalid_argument, "{}: a {} becomes a folder; give the name of one",
                 destination_.string(), to_string(report_.source));
        }
    }

    const GgufFile& base() const {
        if (!base_) {
            fail(ErrorCode::invalid_argument,
                 "{}: the model this {} was trained for is needed; give its GGUF with --base",
                 source_.string(), to_string(report_.source));
        }
        return *base_;
    }

    ConvertReport done(std::vector<std::filesystem::path> written) {
        report_.written = std::move(written);
        return report_;
    }

    ConvertReport write_pooler_file(const PoolerFile& pooler) {
        write_pooler(destination_, pooler, options_.type.value_or(GGML_TYPE_F32));
        return done({destination_});
    }

    ConvertReport from_pooler_gguf() {
        if (destination_.extension() == gguf_suffix) {
            require_file(gguf_suffix);
            return write_pooler_file(read_pooler(source_));
        }
        require_file(safetensors_suffix);
        export_pooler(read_pooler(source_).weights, destination_);
        return done({destination_, destination_.parent_path() / "pooler_config.json"});
    }

    ConvertReport to_bundle() {
        require_folder();
        bundle_from_upstream(source_, base(), destination_,
                             {.pooler_type = options_.type.value_or(GGML_TYPE_F32),
                              .lora_type = options_.lora_type,
                              .heads = options_.heads,
                              .trained = options_.trained});
        return done({destination_});
    }

    ConvertReport from_model_gguf() {
        require_file(gguf_suffix);
        if (!options_.type) {
            fail(ErrorCode::invalid_argument,
                 "{}: already a GGUF model; say with --type what to convert it to", source_.string());
        }
        report_.model = gguf_to_gguf(source_, destination_, *options_.type);
        return done({destination_});
    }

    const std::filesystem::path& source_;
    const std::filesystem::path& destination_;
    const ConvertOptions& options_;
    std::optional<GgufFile> base_;
    ConvertReport report_;
};

} // namespace

ConvertReport convert(const std::filesystem::path& source, const std::filesystem::path& destination,
                      const ConvertOptions& options) {
    return Conversion(source, destination, options).run();
}

} // namespace spool
