// `spool inspect`: what a file or folder is, and whether spool can use it.
#include "convert/inspect.h"

#include <algorithm>
#include <memory>
#include <string>

#include <fmt/core.h>

#include "cli/command.h"
#include "core/progress.h"

namespace spool::cli {

namespace {

struct InspectArguments {
    std::string path;
    bool no_tensors = false;
};

constexpr size_t longest_value = 100;

/// Of text from a file: nothing that could move a terminal's cursor.
std::string one_line(const Json& value) {
    if (value.is_null()) {
        return "none";
    }
    std::string text = value.is_string() ? value.get<std::string>() : json_text(value);
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
    if (text.size() > longest_value) {
        size_t end = longest_value;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
            --end;
        }
        text.resize(end);
        text += "...";
    }
    return text;
}

void print_table(const Json& tensors) {
    size_t name_width = 4;
    size_t shape_width = 5;
    for (const Json& tensor : tensors) {
        name_width = std::max(name_width, one_line(tensor.at("name")).size());
        shape_width = std::max(shape_width, tensor.at("shape").dump().size());
    }
    fmt::print("\n{:<{}}  {:<6}  {:<{}}  {:>10}\n", "name", name_width, "type", "shape", shape_width,
               "bytes");
    for (const Json& tensor : tensors) {
        fmt::print("{:<{}}  {:<6}  {:<{}}  {:>10}\n", one_line(tensor.at("name")), name_width,
                   tensor.at("type").get<std::string>(), tensor.at("shape").dump(), shape_width,
                   tensor.at("bytes").get<size_t>());
    }
}

void print_text(const Json& report, bool with_tensors) {
    const Json& tensors = report.at("tensors");
    fmt::print("{}: {}, {}", report.at("path").get<std::string>(), report.at("kind").get<std::string>(),
               format_bytes(report.at("bytes").get<double>()));
    if (!tensors.empty()) {
        fmt::print(", {} tensors", tensors.size());
    }
    fmt::print("\n");
    // A session's metadata is its identity as JSON and counts; the report has both in readable form.
    const auto& facts = report.at(report.contains("session") ? "session" : "metadata");
    for (const auto& [key, value] : facts.items()) {
        fmt::print("  {} = {}\n", one_line(key), one_line(value));
    }
    if (with_tensors && !tensors.empty()) {
        print_table(tensors);
    }
    const Json& problem = report.at("problem");
    fmt::print("\n{}\n", problem.is_null() ? "checked: ok" : "refused: " + problem.get<std::string>());
}

int run(const InspectArguments& arguments, const Global& global) {
    Json report = inspect(arguments.path);
    const bool usable = report.at("problem").is_null();
    if (global.json) {
        print_json(report);
    } else {
        print_text(report, !arguments.no_tensors);
    }
    return usable ? exit_success : exit_failure;
}

} // namespace

void add_inspect(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<InspectArguments>();
    CLI::App* command = app.add_subcommand("inspect", "show what a file or folder is, and check it");
    command->footer(
        "Reads GGUF models, pooler.gguf, lora.gguf, sessions, safetensors, torch.save archives, bundles, "
        "adapters and model folders.\nEnds with code 1 if spool could not use it.\nExamples:\n"
        "  spool inspect model.gguf\n"
        "  spool inspect bundle/ --no-tensors");
    command->add_option("FILE", arguments->path, "file or folder")->required();
    command->add_flag("--no-tensors", arguments->no_tensors, "leave the table of tensors out");
    command->callback([arguments, &global] { global.exit_code = run(*arguments, global); });
}

} // namespace spool::cli
