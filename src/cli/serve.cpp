// `spool serve`: an OpenAI-compatible server of many conversations in constant memory.
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/core.h>

#include "cli/command.h"
#include "cli/embedder_option.h"
#include "cli/options.h"
#include "core/file.h"
#include "core/log.h"
#include "generation/announce.h"
#include "server/server.h"

namespace spool::cli {

namespace {

struct ServeArguments {
    ModelArguments model;
    MemoryArguments memory;
    EngineOptions engine;
    ServerOptions server;
    EmbedderArguments embedder;
    std::string reasoning = "auto";
    std::string chat_template;
    std::string sessions_folder;
};

int run(ServeArguments& arguments, const Global& global) {
    const Loaded loaded = load(arguments.model);
    EngineOptions options = arguments.engine;
    const uint32_t parallel = options.pool.sessions;
    options.pool =
        pool_options(arguments.model, arguments.memory.settings(loaded.bundle_or_null(), *loaded.model));
    options.pool.sessions = parallel;
    if (!arguments.chat_template.empty()) {
        options.chat_template = read_text(arguments.chat_template);
    }
    options.reasoning =
        reasoning_format(arguments.reasoning, ChatTemplate(*loaded.model, options.chat_template));
    options.store.folder = arguments.sessions_folder;
    Engine engine(*loaded.model, loaded.bundle_or_null(), options);
    const auto embedder = arguments.embedder.load(arguments.model.threads, arguments.model.gpu_layers);
    // Copies: before a turn, and to save.
    announce_memory(engine.pool(), size_t{2} * parallel, embedder ? embedder->memory() : 0);

    ServerOptions server_options = arguments.server;
    server_options.embedder = embedder;
    if (server_options.model_name.empty()) {
        server_options.model_name = loaded.model->path().stem().string();
    }
    Server server(engine, server_options);
    catch_interrupts();
    std::thread serving([&] { server.run(); });
    if (global.json) {
        print_json({{"host", server_options.host}, {"port", server.port()}, {"sessions", parallel}});
        std::fflush(stdout);
    }
    log_info("{} conversations at a time on http://{}:{}/v1; Ctrl-C ends", parallel, server_options.host,
             server.port());
    while (!interrupted()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    server.stop();
    serving.join();
    return exit_success;
}

} // namespace

void add_serve(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<ServeArguments>();
    arguments->engine.pool.sessions = 1;
    arguments->engine.sampler.temperature = 0.6F;
    CLI::App* command = app.add_subcommand("serve", "serve many conversations to OpenAI's clients");
    command->footer("Routes: /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings, "
                    "/v1/models, /health, /props, /slots, /metrics.\n"
                    "Example: spool serve -m model.gguf --bundle DIR --parallel 4 --sessions conversations/");
    arguments->model.add_to(*command);
    arguments->memory.add_to(*command);
    const auto option = [&](const std::string& names, auto& value, const std::string& help) {
        return command->add_option(names, value, help)->capture_default_str()->group("Server");
    };
    ServerOptions& server = arguments->server;
    option("--host", server.host, "address to listen on; 0.0.0.0 for all");
    option("--port", server.port, "port; 0: any free one")->check(CLI::Range(0, 65535));
    option("--parallel", arguments->engine.pool.sessions, "conversations at a time, each with its own cells")
        ->check(CLI::Range(1, 256));
    option("--api-key", server.api_keys, "keys of which each request must bring one (default: SPOOL_API_KEY)")
        ->envname("SPOOL_API_KEY");
    option("--cors", server.cors_origin, "origin whose pages may ask, or *");
    option("--max-body", server.max_body_bytes, "largest request, in bytes");
    option("--read-timeout", server.read_seconds, "seconds a silent client is waited for")
        ->check(CLI::PositiveNumber);
    option("--alias", server.model_name, "name of the model (default: the file's)");
    option("--sessions", arguments->sessions_folder,
           "folder where conversations wait for their next turn, over restarts too (default: none; they are "
           "forgotten when their cells are needed)");
    option("--max-sessions", arguments->engine.store.most_saved, "conversations kept there, the newest");
    arguments->embedder.add_to(*command, "Server");
    const auto rule = [&](const std::string& names, auto& value, const std::string& help) {
        return command->add_option(names, value, help)->capture_default_str()->group("Replies");
    };
    rule("-n,--predict", arguments->engine.rules.max_tokens, "most tokens of a reply, thinking included");
    rule("--max-seconds", arguments->engine.rules.max_seconds, "most seconds of a reply; 0: any");
    rule("--retries", arguments->engine.rules.retries, "times a reply that cannot stand is drawn again");
    rule("--reasoning", arguments->reasoning, "auto (as the template says) | think | none");
    rule("--chat-template", arguments->chat_template, "Jinja file (default: the model's own)")
        ->check(CLI::ExistingFile);
    rule("--persona", arguments->engine.format.persona, "text that stays pinned in every conversation");
    command
        ->add_flag("--system-role", arguments->engine.format.system_role,
                   "system messages stay what they are, instead of going into the user's first text")
        ->group("Replies");
    add_sampler_options(*command, arguments->engine.sampler);
    command->callback([arguments, &global] { global.exit_code = run(*arguments, global); });
}

} // namespace spool::cli
