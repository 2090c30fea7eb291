#include "generation/stop_rules.h"

#include <algorithm>
#include <utility>

namespace spool {

std::string_view to_string(StopReason reason) {
    switch (reason) {
    case StopReason::end_token:
        return "end_token";
    case StopReason::max_tokens:
        return "max_tokens";
    case StopReason::time_limit:
        return "time_limit";
    case StopReason::repetition:
        return "repetition";
    case StopReason::stop_string:
        return "stop_string";
    case StopReason::interrupted:
        return "interrupted";
    case StopReason::context_full:
        return "context_full";
    case StopReason::caller:
        return "caller";
    }
    return "caller";
}

bool RepetitionRule::push(Token token) {
    run_ = token == last_ ? run_ + 1 : 1;
    last_ = token;
    return limit_ > 0 && run_ >= limit_;
}

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    std::erase_if(strings_, [](const std::string& text) { return text.empty(); });
}

std::string StopStrings::push(std::string_view text) {
    if (found_) {
        return {};
    }
    held_ += text;
    size_t cut = std::string::npos;
    for (const auto& stop : strings_) {
        cut = std::min(cut, held_.find(stop));
    }
    if (cut != std::string::npos) {
        found_ = true;
        held_.resize(cut);
        return std::exchange(held_, {});
    }
    size_t keep = 0;
    for (const auto& stop : strings_) {
        for (size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length) {
            if (held_.ends_with(std::string_view(stop).substr(0, length))) {
                keep = length;
            }
        }
    }
    std::string shown = held_.substr(0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
    return shown;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

} // namespace spool
