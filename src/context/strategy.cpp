#include "context/strategy.h"

#include <algorithm>

#include "context/full.h"
#include "context/slots.h"
#include "context/soft_prompt.h"
#include "context/window.h"
#include "core/error.h"

namespace spool {

namespace {

/// `memory`: positions that soft prompt or slots take.
void check_sizes(const MemorySettings& settings, const Model& model, uint32_t memory) {
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
    const uint64_t longest = uint64_t{settings.pin} + memory + settings.window + 2 * uint64_t{settings.chunk};
    if (longest > settings.max_position) {
        fail(ErrorCode::invalid_argument,
             "--pin {} + --window {} + 2 x --chunk {} + {} for memory need {} positions, but only {} are "
             "there (what the model or the bundle was trained for); make one of them smaller",
             settings.pin, settings.window, settings.chunk, memory, longest, settings.max_position);
    }
}

std::unique_ptr<Strategy> make_soft_prompt(const MemorySettings& settings, const Model& model,
                                           const PoolerShape* pooler) {
    if (pooler == nullptr) {
        fail(ErrorCode::invalid_argument, "--strategy soft-prompt needs a trained pooler: pass a --bundle "
                                          "DIR that has one, or use --strategy window");
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

std::unique_ptr<Strategy> make_slots(const MemorySettings& settings, const Model& model,
                                     const SlotsFile* slots) {
    if (slots == nullptr) {
        fail(ErrorCode::invalid_argument, "--strategy slots needs trained slots: pass a --bundle DIR that "
                                          "has them, or use --strategy window");
    }
    if (slots->width != model.facts().width) {
        fail(ErrorCode::incompatible, "the bundle's slots have width {}, but {} has width {}", slots->width,
             model.path().string(), model.facts().width);
    }
    if (settings.max_slots < slots->count) {
        fail(ErrorCode::invalid_argument,
             "--max-slots {} is too small: each chunk writes {}; use --strategy window to keep nothing",
             settings.max_slots, slots->count);
    }
    // Live slots stand at their own positions, one group every chunk.
    const uint32_t groups = settings.max_slots / slots->count;
    check_sizes(settings, model, groups * (settings.chunk + slots->count) + slots->count);
    return std::make_unique<SlotsStrategy>(settings, slots->count);
}

} // namespace

std::unique_ptr<Strategy> make_strategy(const MemorySettings& requested, const Model& model,
                                        const MemoryWriters& writers) {
    MemorySettings settings = requested;
    const auto trained = static_cast<uint32_t>(std::max(0, model.facts().trained_context));
    settings.max_position = settings.max_position == 0 ? trained : std::min(settings.max_position, trained);

    switch (settings.strategy) {
    case StrategyKind::full:
        return std::make_unique<FullStrategy>(settings);
    case StrategyKind::window:
        break;
    case StrategyKind::soft_prompt:
        return make_soft_prompt(settings, model, writers.pooler);
    case StrategyKind::slots:
        return make_slots(settings, model, writers.slots);
    }
    check_sizes(settings, model, 0);
    return std::make_unique<WindowStrategy>(settings);
}

} // namespace spool
