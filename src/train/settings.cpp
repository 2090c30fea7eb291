#include "train/settings.h"

#include <array>
#include <type_traits>
#include <utility>

#include "core/error.h"

namespace spool::train {

namespace {

constexpr std::array<std::pair<Stage, std::string_view>, 5> stages = {{{Stage::frozen, "frozen"},
                                                                       {Stage::lora, "lora"},
                                                                       {Stage::qlora, "qlora"},
                                                                       {Stage::full, "full"},
                                                                       {Stage::scratch, "scratch"}}};

void require(bool condition, std::string_view message) {
    if (!condition) {
        fail(ErrorCode::invalid_argument, "{}", message);
    }
}

} // namespace

std::string_view to_string(Stage stage) {
    for (const auto& [value, name] : stages) {
        if (value == stage) {
            return name;
        }
    }
    return "?";
}

Stage stage_from_string(std::string_view text) {
    for (const auto& [value, name] : stages) {
        if (name == text) {
            return value;
        }
    }
    fail(ErrorCode::invalid_argument, "stage '{}': expected frozen, lora, qlora, full or scratch", text);
}

std::string_view to_string(MemoryKind kind) {
    switch (kind) {
    case MemoryKind::embedding:
        return "embedding";
    case MemoryKind::hidden:
        return "hidden";
    case MemoryKind::slots:
        return "slots";
    }
    return "?";
}

MemoryKind memory_from_string(std::string_view text) {
    for (const auto kind : {MemoryKind::embedding, MemoryKind::hidden, MemoryKind::slots}) {
        if (to_string(kind) == text) {
            return kind;
        }
    }
    fail(ErrorCode::invalid_argument, "memory '{}': expected embedding, hidden or slots", text);
}

void check(const Settings& s) {
    require(!s.model.empty(), "--model: name the GGUF model to train for");
    require(!s.data.empty(), "--data: name at least one folder made by spool prepare");
    require(!s.out.empty(), "--out: name the folder for checkpoints and curves");
    require(s.window_min >= 1 && s.window_min <= s.window_max, "--window-min must be from 1 to --window-max");
    require(s.chunk >= 1, "--chunk must be at least 1");
    require(s.max_distant_min >= 1, "--max-distant-min must be at least 1");
    require(s.help_weight >= 0, "--help-weight must not be negative");
    const bool slots = s.memory == MemoryKind::slots;
    require(s.slots >= 1 && s.slots <= s.max_slots, "--slots must be from 1 to --max-slots");
    require(!slots || s.recite_steps == 0, "--recite-steps needs a pooler");
    require(slots || s.layout == Layout::rebuild || s.chunk > s.n_sp,
            "--chunk must be larger than --n-sp under carry");
    require(s.full_share >= 0 && s.window_share >= 0 && s.full_share + s.window_share <= 1,
            "--full-share and --window-share are shares: together at most 1");
    require(s.rank >= 1, "--rank must be at least 1");
    require(s.batch_tokens >= 1 && s.max_tokens >= 2, "--batch-tokens and --max-tokens must be positive");
    require(s.lr > 0 && s.pooler_lr > 0, "--lr and --pooler-lr must be positive");
    require(s.keep >= 1, "--keep must be at least 1");
}

MemorySettings memory_settings(const Settings& settings) {
    MemorySettings memory;
    memory.strategy = settings.memory == MemoryKind::slots ? StrategyKind::slots : StrategyKind::soft_prompt;
    memory.refresh = settings.layout;
    memory.window = settings.window_max;
    memory.chunk = settings.chunk;
    memory.max_distant = settings.max_distant;
    memory.max_slots = settings.max_slots;
    return memory;
}

Json to_json(const Settings& settings) {
    Json json = Json::object();
    visit_settings(settings, [&](const char* name, const auto& value, const char*) {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::filesystem::path>) {
            json[name] = value.string();
        } else if constexpr (std::is_same_v<Value, std::vector<std::filesystem::path>>) {
            json[name] = Json::array();
            for (const auto& path : value) {
                json[name].push_back(path.string());
            }
        } else if constexpr (std::is_same_v<Value, Stage> || std::is_same_v<Value, Layout> ||
                             std::is_same_v<Value, MemoryKind>) {
            json[name] = to_string(value);
        } else {
            json[name] = value;
        }
    });
    return json;
}

} // namespace spool::train
