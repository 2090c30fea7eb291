#include "generation/generate.h"

#include "core/error.h"
#include "generation/utf8_stream.h"

namespace spool {

Generation generate(Session& session, Chooser& sampler, const Tokenizer& tokenizer,
                    const GenerationOptions& options, Meter* meter) {
    Generation result;
    Utf8Stream characters;
    StopStrings stop(options.stop);
    RepetitionRule repetition(options.repeat_limit);
    bool caller_stopped = false;
    const auto start = std::chrono::steady_clock::now();

    const auto show = [&](const std::string& text) {
        result.text += text;
        if (options.on_text && !text.empty() && !options.on_text(text)) {
            caller_stopped = true;
        }
    };
    const auto out_of_time = [&] {
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        return options.max_seconds > 0 && elapsed.count() >= options.max_seconds;
    };

    while (true) {
        if (result.tokens.size() >= options.max_tokens) {
            result.reason = StopReason::max_tokens;
            break;
        }
        if (options.interrupted != nullptr && *options.interrupted) {
            result.reason = StopReason::interrupted;
            break;
        }
        if (out_of_time()) {
            result.reason = StopReason::time_limit;
            break;
        }

        const Token token = sampler.sample(session.logits());
        result.tokens.push_back(token);
        if (tokenizer.is_end(token)) {
            result.reason = StopReason::end_token;
            break;
        }
        show(stop.push(characters.push(tokenizer.piece(token, options.show_special))));
        try {
            session.read(std::span(&token, 1));
        } catch (const Error& error) {
            if (error.code() != ErrorCode::out_of_memory) {
                throw;
            }
            result.reason = StopReason::context_full;
            break;
        }
        if (meter != nullptr) {
            meter->token_generated();
        }
        if (options.on_token) {
            options.on_token();
        }

        if (stop.found()) {
            result.reason = StopReason::stop_string;
            break;
        }
        if (caller_stopped) {
            result.reason = StopReason::caller;
            break;
        }
        if (repetition.push(token)) {
            result.reason = StopReason::repetition;
            break;
        }
    }
    show(stop.push(characters.finish()));
    show(stop.finish());
    return result;
}

} // namespace spool
