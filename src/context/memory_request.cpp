#include "context/memory_request.h"

#include <algorithm>

namespace spool {

MemorySettings resolve(const MemoryRequest& request, const Bundle* bundle, const Model& model) {
    MemorySettings s;
    const auto trained_or = [](uint32_t trained, uint32_t otherwise) {
        return trained > 0 ? trained : otherwise;
    };
    if (bundle != nullptr) {
        const TrainedSettings& trained = bundle->trained;
        s.strategy = bundle->pooler.empty() ? StrategyKind::slots : StrategyKind::soft_prompt;
        s.refresh = trained.layout;
        s.max_position = trained.max_position;
        s.window = trained_or(trained.rw, s.window);
        s.chunk = trained_or(trained.chunk, s.chunk);
        s.max_distant = trained_or(trained.max_distant, s.max_distant);
        s.max_slots = trained_or(trained.max_slots, s.max_slots);
    }
    s.strategy = request.strategy.value_or(s.strategy);
    s.refresh = request.refresh.value_or(s.refresh);
    s.pin = request.pin.value_or(s.pin);
    s.window = request.window.value_or(s.window);
    s.chunk = request.chunk.value_or(s.chunk);
    s.max_distant = request.max_distant.value_or(s.max_distant);
    s.max_slots = request.max_slots.value_or(s.max_slots);
    s.full_length =
        request.full_length.value_or(static_cast<uint32_t>(std::max(0, model.facts().trained_context)));
    return s;
}

} // namespace spool
