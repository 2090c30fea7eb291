#include "memory/settings.h"

#include "core/error.h"

namespace spool {

std::string_view to_string(StrategyKind kind) {
    switch (kind) {
    case StrategyKind::full:
        return "full";
    case StrategyKind::window:
        return "window";
    case StrategyKind::soft_prompt:
        return "soft-prompt";
    case StrategyKind::slots:
        return "slots";
    }
    return "window";
}

StrategyKind strategy_from_string(std::string_view text) {
    for (const auto kind :
         {StrategyKind::full, StrategyKind::window, StrategyKind::soft_prompt, StrategyKind::slots}) {
        if (text == to_string(kind)) {
            return kind;
        }
    }
    fail(ErrorCode::invalid_argument, "unknown strategy \"{}\"; expected full, window, soft-prompt or slots",
         text);
}

} // namespace spool
