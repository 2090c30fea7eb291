// `spool completion SHELL`: completion scripts made from the parser itself, so that they cannot fall behind
// it.
#include <fmt/core.h>

#include "cli/command.h"
#include "core/error.h"

namespace spool::cli {

namespace {

/// All option names of `command`, and of the program, separated by spaces.
std::string option_words(const CLI::App& command) {
    std::string words;
    for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
        for (const CLI::Option* option : app->get_options()) {
            for (const auto& name : option->get_lnames()) {
                words += " --" + name;
            }
            for (const auto& name : option->get_snames()) {
                words += " -" + name;
            }
        }
    }
    return words;
}

/// Calls `visit` with the words that lead to each command: "run", "eval", "eval ce".
void visit_commands(const CLI::App& app, const std::string& path,
                    const std::function<void(const std::string&, const CLI::App&)>& visit) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        const std::string name = path.empty() ? command->get_name() : path + " " + command->get_name();
        visit(name, *command);
        visit_commands(*command, name, visit);
    }
}

std::string subcommand_words(const CLI::App& app) {
    std::string words;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        words += " " + command->get_name();
    }
    return words;
}

std::string bash_script(const CLI::App& app) {
    std::string cases;
    visit_commands(app, "", [&](const std::string& path, const CLI::App& command) {
        cases += fmt::format("        \"{}\") words=\"{}{}\" ;;\n", path, subcommand_words(command),
                             option_words(command));
    });
    return fmt::format(R"(_spool() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" path="" word words
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in -*) break ;; *) path="${{path:+$path }}$word" ;; esac
    done
    case "$path" in
{}        *) words="{}{}" ;;
    esac
    case "$current" in
        -*) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current") ;;
    esac
}}
complete -o filenames -F _spool spool
)",
                       cases, subcommand_words(app), option_words(app));
}

/// As a file named _spool in a folder of $fpath, and as text to evaluate in .zshrc after compinit.
std::string zsh_script(const CLI::App& app) {
    std::string cases;
    visit_commands(app, "", [&](const std::string& path, const CLI::App& command) {
        cases += fmt::format("        \"{}\") candidates=({}{}) ;;\n", path, subcommand_words(command),
                             option_words(command));
    });
    return fmt::format(R"(#compdef spool
_spool() {{
    local word command=""
    local -a candidates
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$word" in -*) break ;; *) command="${{command:+$command }}$word" ;; esac
    done
    case "$command" in
{}        *) candidates=({}{}) ;;
    esac
    compadd -- $candidates
    [[ "${{words[CURRENT]}}" == -* ]] || _files
}}
if [[ "${{funcstack[1]}}" == _spool ]]; then
    _spool "$@"
else
    compdef _spool spool
fi
)",
                       cases, subcommand_words(app), option_words(app));
}

std::string fish_script(const CLI::App& app) {
    std::string script =
        "complete -c spool -n __fish_use_subcommand -f -a '" + subcommand_words(app).substr(1) + "'\n";
    visit_commands(app, "", [&](const std::string& path, const CLI::App& command) {
        const std::string name = path.substr(path.rfind(' ') == std::string::npos ? 0 : path.rfind(' ') + 1);
        for (const CLI::Option* option : command.get_options()) {
            for (const auto& long_name : option->get_lnames()) {
                std::string text = option->get_description();
                std::erase(text, '\'');
                script += fmt::format("complete -c spool -n '__fish_seen_subcommand_from {}' -l {} -d '{}'\n",
                                      name, long_name, text);
            }
        }
    });
    return script;
}

int print_completion(const CLI::App& app, const std::string& shell) {
    if (shell == "bash") {
        fmt::print("{}", bash_script(app));
    } else if (shell == "zsh") {
        fmt::print("{}", zsh_script(app));
    } else {
        fmt::print("{}", fish_script(app));
    }
    return exit_success;
}

} // namespace

void add_completion(CLI::App& app, Global& global) {
    auto shell = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand("completion", "print a completion script for bash, zsh or fish");
    command->add_option("shell", *shell, "bash | zsh | fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    command->footer("Example: spool completion bash > ~/.local/share/bash-completion/completions/spool");
    command->callback([&app, &global, shell] { global.exit_code = print_completion(app, *shell); });
}

} // namespace spool::cli
