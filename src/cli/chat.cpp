// `spool chat`: a conversation on the terminal, or one turn a line from a pipe.
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "chat/conversation.h"
#include "chat/memory_report.h"
#include "cli/chat_screen.h"
#include "cli/command.h"
#include "cli/line_editor.h"
#include "cli/options.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/progress.h"
#include "eval/battery.h"
#include "generation/announce.h"
#include "generation/session_file.h"

namespace spool::cli {

namespace {

constexpr uint32_t chat_window = 1000;

constexpr const char* help =
    "/help           this list\n"
    "/undo           take back the last turn\n"
    "/retry          draw another reply to the last turn\n"
    "/reset          forget everything\n"
    "/save FILE      write the conversation, memory and all\n"
    "/load FILE      go on from a saved one\n"
    "/window N       keep N recent tokens word for word (reads the conversation again)\n"
    "/stats          tokens, speed and cells\n"
    "/why            what is in the window, what is compressed, what is gone\n"
    "/think [VIEW]   the last turn's thinking; or show thinking: full, fold, off\n"
    "/quit           end (or Ctrl-D); Ctrl-C stops a reply\n";

struct ChatArguments {
    ModelArguments model;
    MemoryArguments memory;
    SamplerOptions sampler;
    TurnRules rules;
    TurnFormatOptions format;
    std::string reasoning = "auto";
    std::string chat_template;
    std::string session_file;
    std::string thinking = "full";
    bool math = false;
    bool answer_greedy = false;
};

SamplerOptions greedy(SamplerOptions options) {
    options.temperature = 0;
    return options;
}

/// Everything one conversation needs, in the order it is made.
class Chat {
  public:
    Chat(const ChatArguments& arguments, const Global& global)
        : arguments_(arguments), global_(global), loaded_(load(arguments.model)), tokenizer_(*loaded_.model),
          template_(*loaded_.model,
                    arguments.chat_template.empty() ? "" : read_text(arguments.chat_template)),
          format_(template_, tokenizer_, reasoning_format(arguments.reasoning, template_), arguments.format),
          sampler_(tokenizer_, arguments.sampler), answer_sampler_(tokenizer_, greedy(arguments.sampler)),
          editor_(state_file("chat_history")),
          screen_(editor_.on_terminal(), thinking_view(arguments.thinking)) {
        memory_ = arguments.memory.settings(loaded_.bundle_or_null(), *loaded_.model);
        if (!arguments.memory.request.window && (!loaded_.bundle || loaded_.bundle->trained.rw == 0)) {
            memory_.window = chat_window;
        }
        if (!arguments.memory.request.pin) {
            memory_.pin = format_.pinned();
        }
        open();
        announce_memory(*pool_, Conversation::most_undone + 2); // the turn's own, and to save
        if (!arguments.session_file.empty() && std::filesystem::exists(arguments.session_file)) {
            load_file(arguments.session_file);
        }
    }

    int run() {
        if (editor_.on_terminal()) {
            log_info("/help lists the commands");
        }
        while (true) {
            const LineEditor::Line line = editor_.read("> ");
            if (line.how == LineEditor::Ended::end_of_input) {
                break;
            }
            if (line.how == LineEditor::Ended::interrupted) {
                if (!editor_.on_terminal() || told_to_end()) {
                    return finish(exit_interrupted);
                }
                clear_interrupt();
                fmt::print("\n");
                log_info("(Ctrl-D or /quit ends)");
                continue;
            }
            if (line.text.find_first_not_of(" \t\n") == std::string::npos) {
                continue;
            }
            if (line.text.starts_with('/') && editor_.on_terminal()) {
                if (!command(line.text)) {
                    break;
                }
                continue;
            }
            reply([&](const TurnEvents& events) { return conversation_->say(decorated(line.text), events); });
            if (interrupted() && (!editor_.on_terminal() || told_to_end())) {
                return finish(exit_interrupted);
            }
            clear_interrupt();
        }
        return finish(exit_success);
    }

  private:
    void open() {
        conversation_.reset();
        session_.reset();
        pool_.reset();
        pool_ = std::make_unique<SessionPool>(*loaded_.model, loaded_.bundle_or_null(),
                                              pool_options(arguments_.model, memory_));
        session_ = pool_->open();
        conversation_ = std::make_unique<Conversation>(
            ConversationParts{*session_, tokenizer_, format_, sampler_,
                              arguments_.answer_greedy ? &answer_sampler_ : nullptr},
            arguments_.rules);
    }

    int finish(int code) {
        if (!arguments_.session_file.empty() && !session_->transcript().tokens.empty()) {
            save_file(arguments_.session_file);
        }
        return code;
    }

    std::string decorated(const std::string& text) const {
        return arguments_.math ? text + "\n" + math_sentence : text;
    }

    template <typename Draw>
    void reply(Draw&& draw) {
        if (global_.json) {
            TurnEvents events;
            events.interrupted = &interrupted();
            Json json = to_json(draw(events));
            json["memory"] = to_json(report_memory(session_->transcript(), memory_, tokenizer_));
            print_json(json);
            return;
        }
        screen_.finish(draw(screen_.events(interrupted())));
    }

    /// False: the chat ends.
    bool command(const std::string& line) {
        const size_t space = line.find(' ');
        const std::string name = line.substr(0, space);
        const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
        try {
            if (name == "/quit" || name == "/exit") {
                return false;
            }
            run_command(name, argument);
        } catch (const Error& error) {
            log_warning("{}", error.what());
        }
        return true;
    }

    void run_command(const std::string& name, const std::string& argument) {
        if (name == "/help") {
            fmt::print("{}", help);
        } else if (name == "/undo") {
            log_info("{}", conversation_->undo() ? "the last turn is taken back" : too_far());
        } else if (name == "/retry") {
            retry();
        } else if (name == "/reset") {
            conversation_->reset();
            log_info("everything is forgotten");
        } else if (name == "/save") {
            save_file(named(argument, name));
        } else if (name == "/load") {
            load_file(named(argument, name));
        } else if (name == "/window") {
            change_window(argument);
        } else if (name == "/stats") {
            stats();
        } else if (name == "/why") {
            fmt::print("{}", to_text(report_memory(session_->transcript(), memory_, tokenizer_)));
        } else if (name == "/think") {
            think(argument);
        } else {
            log_warning("there is no command {}; /help lists them", name);
        }
        std::fflush(stdout);
    }

    std::string too_far() const {
        return conversation_->turns().empty()
                   ? "there is no turn yet"
                   : fmt::format("only the last {} turns can be taken back", Conversation::most_undone);
    }

    static std::string named(const std::string& argument, const std::string& command) {
        if (argument.empty()) {
            fail(ErrorCode::invalid_argument, "{} needs a file name", command);
        }
        return argument;
    }

    void retry() {
        if (conversation_->turns().empty()) {
            log_info("there is no turn yet");
            return;
        }
        bool could = true;
        reply([&](const TurnEvents& events) {
            const auto turn = conversation_->retry(events);
            could = turn.has_value();
            return turn.value_or(Turn{});
        });
        clear_interrupt();
        if (!could) {
            log_info("{}", too_far());
        }
    }

    void save_file(const std::string& path) {
        Json turns = Json::array();
        for (const Turn& turn : conversation_->turns()) {
            turns.push_back(to_json(turn));
        }
        save_session(*session_, *pool_, loaded_.bundle_or_null(), path, {{"turns", turns}});
        log_info("wrote {}", path);
    }

    void load_file(const std::string& path) {
        const Json chat = restore_session(*session_, *pool_, loaded_.bundle_or_null(), path);
        std::vector<Turn> turns;
        for (const Json& turn : chat.is_object() ? chat.value("turns", Json::array()) : Json::array()) {
            turns.push_back(turn_from_json(turn));
        }
        log_info("{}: {} turns, {} tokens", path, turns.size(), session_->transcript().tokens.size());
        conversation_->resume(std::move(turns));
    }

    void change_window(const std::string& argument) {
        size_t used = 0;
        unsigned long window = 0;
        try {
            window = std::stoul(argument, &used);
        } catch (const std::exception&) {
            used = 0;
        }
        if (used == 0 || used != argument.size() || window == 0 || window > (1U << 24U)) {
            fail(ErrorCode::invalid_argument, "/window takes a number of tokens; it is {} now",
                 memory_.window);
        }
        const std::vector<Token> tokens = session_->transcript().tokens;
        std::vector<Turn> turns = conversation_->turns();
        const uint32_t before = memory_.window;
        memory_.window = static_cast<uint32_t>(window);
        try {
            open();
        } catch (const Error&) {
            memory_.window = before;
            open();
            read_again(tokens, std::move(turns));
            throw;
        }
        read_again(tokens, std::move(turns));
        log_info("the window is {} tokens now, {} cells in all", memory_.window, pool_->memory().cells);
    }

    void read_again(std::span<const Token> tokens, std::vector<Turn> turns) {
        Progress progress("reading the conversation again", tokens.size());
        constexpr size_t piece = 256;
        for (size_t at = 0; at < tokens.size(); at += piece) {
            session_->read(tokens.subspan(at, std::min(piece, tokens.size() - at)));
            progress.update(std::min(tokens.size(), at + piece));
        }
        conversation_->resume(std::move(turns));
    }

    void stats() {
        size_t tokens = 0;
        double seconds = 0;
        for (const Turn& turn : conversation_->turns()) {
            tokens += turn.tokens;
            seconds += turn.seconds;
        }
        fmt::print("{} turns, {} tokens written", conversation_->turns().size(), tokens);
        if (seconds > 0) {
            fmt::print(", {:.1f} a second", static_cast<double>(tokens) / seconds);
        }
        fmt::print("\n{} of {} cells in use, KV {} fixed, strategy {}, window {}\n", session_->cells_used(),
                   pool_->memory().cells, format_bytes(static_cast<double>(pool_->memory().kv)),
                   to_string(memory_.strategy), memory_.window);
    }

    void think(const std::string& argument) {
        if (!argument.empty()) {
            screen_.set_view(thinking_view(argument));
        } else if (conversation_->turns().empty() || conversation_->turns().back().thinking.empty()) {
            log_info("the last turn has no thinking");
        } else {
            screen_.show_thinking(conversation_->turns().back());
        }
    }

    const ChatArguments& arguments_;
    const Global& global_;
    Loaded loaded_;
    Tokenizer tokenizer_;
    ChatTemplate template_;
    TurnFormat format_;
    Sampler sampler_;
    Sampler answer_sampler_;
    LineEditor editor_;
    ChatScreen screen_;
    MemorySettings memory_;
    std::unique_ptr<SessionPool> pool_;
    std::unique_ptr<Session> session_;
    std::unique_ptr<Conversation> conversation_;
};

int run_chat(const ChatArguments& arguments, const Global& global) {
    catch_interrupts();
    return Chat(arguments, global).run();
}

} // namespace

void add_chat(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<ChatArguments>();
    CLI::App* command = app.add_subcommand("chat", "talk with a model, for as long as you like");
    command->footer(
        "Without a terminal each line of stdin is a turn; with --json each reply is one JSON object.\n"
        "Example: spool chat -m model.gguf --session chat.spool");
    arguments->sampler.temperature = 0.6F;
    arguments->model.add_to(*command);
    arguments->memory.add_to(*command);
    const auto option = [&](const std::string& names, auto& value, const std::string& text) {
        return command->add_option(names, value, text)->capture_default_str()->group("Turns");
    };
    option("-n,--predict,--n-predict", arguments->rules.max_tokens, "tokens in a reply, thinking included");
    option("--max-seconds", arguments->rules.max_seconds, "a reply that takes longer is drawn again; 0: any");
    option("--repeat-limit", arguments->rules.repeat_limit,
           "identical tokens in a row that end a reply; 0: any");
    option("--retries", arguments->rules.retries, "times a reply that cannot stand is drawn again");
    option("-r,--reverse-prompt", arguments->rules.stop, "stop string; may be given several times");
    option("--persona", arguments->format.persona, "who the model is; stays pinned");
    option("--system,--system-prompt", arguments->format.instruction,
           "instruction; it goes into the first turn");
    command
        ->add_flag("--system-role", arguments->format.system_role,
                   "give the instruction as a system message instead, for models trained with one")
        ->group("Turns");
    option("--reasoning", arguments->reasoning, "auto (as the template says) | think | none");
    option("--chat-template", arguments->chat_template, "Jinja file (default: the model's)");
    option("--show-thinking", arguments->thinking, "full | fold | off");
    command->add_flag("--math", arguments->math, "ask for step by step reasoning and a \\boxed{} answer")
        ->group("Turns");
    command->add_flag("--answer-greedy", arguments->answer_greedy, "sample the thinking only")
        ->group("Turns");
    option("--session", arguments->session_file, "go on from this file, and write it at the end");
    add_sampler_options(*command, arguments->sampler);
    command->callback([arguments, &global] { global.exit_code = run_chat(*arguments, global); });
}

} // namespace spool::cli
