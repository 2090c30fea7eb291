// `spool pull`: a model's or bundle's repository from a hub, into the cache that other programs share.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "cli/command.h"
#include "cli/options.h"

namespace spool::cli {

namespace {

struct PullArguments {
    std::string repository;
    std::vector<std::string> files;
    HubArguments hub;
};

void run(const PullArguments& arguments, const Global& global) {
    const auto wanted = [&](const std::string& path) {
        return arguments.files.empty() ? belongs_to_bundle(path)
                                       : std::ranges::find(arguments.files, path) != arguments.files.end();
    };
    const auto folder = fetch_folder(arguments.repository, wanted, arguments.hub.options);
    if (global.json) {
        print_json({{"repository", arguments.repository}, {"folder", folder.string()}});
    } else {
        fmt::print("{}\n", folder.string());
    }
}

} // namespace

void add_pull(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<PullArguments>();
    CLI::App* command = app.add_subcommand("pull", "fetch a model's or bundle's repository from a hub");
    command->footer(
        "Prints the folder it is in. What is there already is not fetched again; a download that broke off\n"
        "goes on; every file is compared with the hash the hub lists. HF_ENDPOINT names another hub, "
        "HF_HOME\n"
        "or HF_HUB_CACHE another cache folder.\n"
        "Example: spool convert \"$(spool pull user/bundle)\" bundle/ --base model.gguf");
    command->add_option("REPO", arguments->repository, "user/repo")->required();
    command->add_option("--file", arguments->files,
                        "only these, by their path in it (default: weights, configurations, tokenizers)");
    arguments->hub.add_to(*command);
    command->callback([arguments, &global] { run(*arguments, global); });
}

} // namespace spool::cli
