#include "context/strategy.h"

#include <algorithm>

#include "context/full.h"
#include "context/soft_prompt.h"
#include "context/window.h"
#include "core/error.h"

namespace spool {

namespace {

void check_sizes(const MemorySettings& settings, const Model& model, uint32_t n_sp) {
    const auto positive = [](uint32_t value, const char* option) {
        if (value == 0) {
            fail(ErrorCode::invalid_argument, "{} is 0; it must be at least 1", option);
        }
    };
    positive(settings.window, "--window");
    positive(settings.chunk, "--chunk");
    if (const auto reason = model.cannot_evict(settings.window)) {
        fail(ErrorCode::unsupported,
             "{}: this model cannot run in constant memory with --strategy {}: {}. "
             "--strategy full works as far as its memory reaches",
             model.path().string(), to_string(settings.strategy), *reason);
    }
    const uint64_t longest = uint64_t{settings.pin} + n_sp + settings.window + 2 * uint64_t{settings.chunk};
    if (longest > settings.max_position) {
        fail(ErrorCode::invalid_argument,
             "--pin {} + --window {} + 2 x --chunk {} + {} soft-prompt vectors need {} positions, but only "
             "{} are "
             "there (what the model or the bundle was trained for); make one of them smaller",
             settings.pin, settings.window, settings.chunk, n_sp, longest, settings.max_position);
    }
}

} // namespace

std::unique_ptr<Strategy> make_strategy(const MemorySettings& requested, const Model& model,
                                        const PoolerShape* pooler) {
    MemorySettings settings = requested;
    const auto trained = static_cast<uint32_t>(std::max(0, model.facts().trained_context));
    settings.max_position = settings.max_position == 0 ? trained : std::min(settings.max_position, trained);

    switch (settings.strategy) {
    case StrategyKind::full:
        return std::make_unique<FullStrategy>(settings);
    case StrategyKind::window:
        check_sizes(settings, model, 0);
        return std::make_unique<WindowStrategy>(settings);
    case StrategyKind::soft_prompt:
        break;
    }
    if (pooler == nullptr) {
        fail(ErrorCode::invalid_argument,
             "--strategy soft-prompt needs a trained pooler: pass --bundle DIR, or use --strategy window");
    }
    if (pooler->hidden != model.facts().width) {
        fail(ErrorCode::incompatible, "the bundle's pooler makes vectors of width {}, but {} has width {}",
             pooler->hidden, model.path().string(), model.facts().width);
    }
    check_sizes(settings, model, pooler->n_sp);
    if (settings.refresh == Layout::carry && settings.chunk <= pooler->n_sp) {
        fail(ErrorCode::invalid_argument,
             "--chunk {} is too small: --refresh carry needs more than the pooler's {} vectors",
             settings.chunk, pooler->n_sp);
    }
    if (settings.max_distant == 0) {
        fail(ErrorCode::invalid_argument, "--max-distant is 0; use --strategy window to keep nothing");
    }
    return std::make_unique<SoftPromptStrategy>(settings, pooler->n_sp);
}

} // namespace spool
