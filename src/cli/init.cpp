// `spool init`: a small model of fresh weights, for `spool-train run --stage scratch`.
#include <filesystem>

#include "cli/command.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/progress.h"
#include "eval/random_model.h"

namespace spool::cli {

namespace {

struct InitArguments {
    std::string tokenizer;
    std::string destination;
    RandomModelShape shape;
    uint32_t vocab = 0;
    std::string chat_template;
};

void run(const InitArguments& arguments, const Global& global) {
    if (std::filesystem::exists(arguments.destination)) {
        fail(ErrorCode::invalid_argument, "{}: exists already", arguments.destination);
    }
    RandomModelShape shape = arguments.shape;
    shape.name = std::filesystem::path(arguments.destination).stem().string();
    if (!arguments.chat_template.empty()) {
        shape.chat_template = read_text(arguments.chat_template);
    }
    write_random_model(arguments.destination, shape, GgufFile(arguments.tokenizer), arguments.vocab);
    const GgufFile written(arguments.destination);
    int64_t weights = 0;
    for (const GgufTensor& tensor : written.tensors()) {
        weights += tensor.elements();
    }
    log_info("wrote {}: {:.2f} million weights ({})", arguments.destination,
             static_cast<double>(weights) / 1e6, format_bytes(static_cast<double>(written.file_size())));
    if (global.json) {
        print_json({{"model", arguments.destination}, {"weights", weights}});
    }
}

} // namespace

void add_init(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<InitArguments>();
    RandomModelShape& shape = arguments->shape;
    shape.layers = 4;
    shape.width = 256;
    shape.heads = 4;
    shape.kv_heads = 4;
    shape.ffn = 704;
    CLI::App* command =
        app.add_subcommand("init", "write a small model of fresh weights, to train from nothing");
    command->footer("Example: spool init model.gguf tiny.gguf --vocab 2048 --layers 4 --width 256");
    command->add_option("TOKENIZER", arguments->tokenizer, "GGUF model whose tokenizer it gets")
        ->required()
        ->check(CLI::ExistingFile);
    command->add_option("DEST", arguments->destination, "GGUF file to write")->required();
    command->add_option("--vocab", arguments->vocab, "keep the tokenizer's first N tokens (default: all)");
    command->add_option("--layers", shape.layers, "blocks")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option("--width", shape.width, "embedding length")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option("--heads", shape.heads, "attention heads")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option("--kv-heads", shape.kv_heads, "heads of keys and values")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option("--ffn", shape.ffn, "inner width")->check(CLI::PositiveNumber)->capture_default_str();
    command->add_option("--context", shape.context, "longest text, in tokens")->capture_default_str();
    command->add_option("--chat-template", arguments->chat_template, "Jinja file (default: the tokenizer's)")
        ->check(CLI::ExistingFile);
    command->add_option("-s,--seed", shape.seed, "of the weights")->capture_default_str();
    command->callback([arguments, &global] { run(*arguments, global); });
}

} // namespace spool::cli
