// `spool convert`: upstream files to spool's, and back.
#include "convert/convert.h"

#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "convert/file_type.h"
#include "core/log.h"
#include "core/progress.h"

namespace spool::cli {

namespace {

struct ConvertArguments {
    std::string source;
    std::string destination;
    std::string type;
    std::string lora_type;
    std::string base;
    std::string tokenizer_from;
    std::string layout = "rebuild";
    ConvertOptions options;
};

std::optional<ggml_type> parse_type(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(tensor_type_from_string(text));
}

std::optional<std::filesystem::path> parse_path(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::filesystem::path>(text);
}

Json to_json(const ConvertReport& report) {
    Json written = Json::array();
    for (const auto& path : report.written) {
        written.push_back(path.string());
    }
    return {{"source", to_string(report.source)},      {"written", written},
            {"tensors", report.model.tensors},         {"mlx_exact", report.model.mlx_exact},
            {"mlx_inexact", report.model.mlx_inexact}, {"unaligned", report.model.unaligned}};
}

void run(ConvertArguments& arguments, const Global& global) {
    ConvertOptions& options = arguments.options;
    options.type = parse_type(arguments.type);
    options.lora_type = parse_type(arguments.lora_type);
    options.base = parse_path(arguments.base);
    options.tokenizer_from = parse_path(arguments.tokenizer_from);
    options.trained.layout = layout_from_string(arguments.layout);
    const ConvertReport report = convert(arguments.source, arguments.destination, options);
    for (const auto& path : report.written) {
        const bool folder = std::filesystem::is_directory(path);
        log_info("{}: wrote {}{}", to_string(report.source), path.string(),
                 folder ? "/"
                        : " (" + format_bytes(static_cast<double>(std::filesystem::file_size(path))) + ")");
    }
    if (global.json) {
        print_json(to_json(report));
    }
}

} // namespace

void add_convert(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<ConvertArguments>();
    ConvertOptions& options = arguments->options;
    CLI::App* command =
        app.add_subcommand("convert", "convert poolers, adapters, models and bundles, in both directions");
    command->footer(
        "What SOURCE is follows from its content; DEST is what it becomes:\n"
        "  pooler.safetensors, pooler.pt, pooler_4bit.safetensors -> pooler.gguf, and back\n"
        "  PEFT adapter -> lora.gguf, and back\n"
        "  folder with a pooler and perhaps an adapter -> bundle folder, and back\n"
        "  Hugging Face or MLX 4-bit model folder -> model.gguf\n"
        "  model.gguf -> model.gguf of another type\n"
        "Examples:\n"
        "  spool convert upstream/ bundle/ --base model.gguf --type q8_0 --layout rebuild --rw 512\n"
        "  spool convert adapter/ lora.gguf --base model.gguf\n"
        "  spool convert DeepSeek-R1-Distill-Qwen-1.5B/ model.gguf --type q8_0\n"
        "  spool convert model.Q4_1.gguf model.F32.gguf --type f32");
    command->add_option("SOURCE", arguments->source, "file or folder to convert")->required();
    command->add_option("DEST", arguments->destination, "file or folder to write")->required();
    command->add_option("--type,--outtype", arguments->type,
                        "type of the matrices written: f32, f16, bf16, q8_0, ... (a bundle: of its pooler)");
    command->add_option("--lora-type", arguments->lora_type, "type of a bundle's adapter; default: its own");
    command->add_option("-m,--base", arguments->base,
                        "GGUF of the model a pooler or adapter was trained for");
    command->add_option("--heads", options.heads,
                        "attention heads of a pooler without pooler_config.json; default: 8");
    command->add_option("--tokenizer-from", arguments->tokenizer_from,
                        "GGUF of the same family to copy the tokenizer from");
    command->add_option("--name", options.name, "general.name of a model; default: the folder's name");
    command->add_option("--layout", arguments->layout, "layout the pooler was trained in")
        ->check(CLI::IsMember({"rebuild", "carry"}))
        ->capture_default_str()
        ->group("Trained settings");
    command->add_option("--rw", options.trained.rw, "window it was trained with")->group("Trained settings");
    command->add_option("--chunk", options.trained.chunk, "chunk it was trained with")
        ->group("Trained settings");
    command
        ->add_option("--max-distant", options.trained.max_distant,
                     "longest distant buffer it was trained with")
        ->group("Trained settings");
    command->add_option("--max-position", options.trained.max_position, "largest position it was trained at")
        ->group("Trained settings");
    command->callback([arguments, &global] { run(*arguments, global); });
}

} // namespace spool::cli
