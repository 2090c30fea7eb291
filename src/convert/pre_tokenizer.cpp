#include "convert/pre_tokenizer.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace spool {

namespace {

constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string text_of(const JsonValue& object, std::string_view key) {
    const auto it = object.is_object() ? object.find(key) : object.end();
    return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

bool flag_of(const JsonValue& object, std::string_view key, bool missing) {
    const auto it = object.find(key);
    return it != object.end() && it->is_boolean() ? it->get<bool>() : missing;
}

/// One line per step: "digits", "bytes", "bytes+regex", "split PATTERN"; anything else as its JSON.
std::string describe_step(const JsonValue& step) {
    const std::string type = text_of(step, "type");
    if (type == "Digits" && flag_of(step, "individual_digits", false)) {
        return "digits";
    }
    if (type == "ByteLevel" && !flag_of(step, "add_prefix_space", true)) {
        return flag_of(step, "use_regex", true) ? "bytes+regex" : "bytes";
    }
    if (type == "Split" && text_of(step, "behavior") == "Isolated" && !flag_of(step, "invert", true)) {
        if (const auto it = step.find("pattern"); it != step.end() && !text_of(*it, "Regex").empty()) {
            return fmt::format("split {}", text_of(*it, "Regex"));
        }
    }
    return step.dump();
}

/// A sequence of one step and the step alone are the same.
std::string describe(const JsonValue* value, std::string_view list) {
    if (value == nullptr) {
        return "";
    }
    const auto steps = value->is_object() ? value->find(list) : value->end();
    if (text_of(*value, "type") != "Sequence" || steps == value->end() || !steps->is_array()) {
        return describe_step(*value);
    }
    std::string text;
    for (const JsonValue& step : *steps) {
        text += text.empty() ? "" : "\n";
        text += describe_step(step);
    }
    return text;
}

/// llama.cpp normalises nothing here: text that is already NFC, as nearly all is, gives the same ids.
bool is_harmless_normalizer(const std::string& text) { return text.empty() || text == R"({"type":"NFC"})"; }

bool ignores_merges(const JsonFields& tokenizer) {
    const JsonValue* model = tokenizer.find("model");
    return model != nullptr && model->is_object() && flag_of(*model, "ignore_merges", false);
}

bool has_added_token(const JsonFields& tokenizer, std::string_view content) {
    const JsonValue* added = tokenizer.find("added_tokens");
    return added != nullptr && std::ranges::any_of(*added, [&](const JsonValue& token) {
               return text_of(token, "content") == content;
           });
}

struct Known {
    std::string steps;
    bool ignore_merges;
    std::string_view name;
};

const std::array<Known, 5>& known() {
    static const std::array<Known, 5> table = {
        {{"digits\nbytes+regex", false, "smollm"},
         {"bytes+regex", false, "gpt-2"},
         {fmt::format("split {}\nbytes", qwen2_pattern), false, "qwen2"},
         {fmt::format("split {}\nbytes", llama3_pattern), true, "llama-bpe"},
         {fmt::format("split {}\nbytes", llama3_pattern), false, "smaug-bpe"}}};
    return table;
}

} // namespace

std::string pre_tokenizer_name(const JsonFields& tokenizer) {
    const std::string normalizer = describe(tokenizer.find("normalizer"), "normalizers");
    const std::string steps = describe(tokenizer.find("pre_tokenizer"), "pretokenizers");
    const bool ignore_merges = ignores_merges(tokenizer);
    const auto it = std::ranges::find_if(known(), [&](const Known& entry) {
        return entry.steps == steps && entry.ignore_merges == ignore_merges;
    });
    if (it == known().end() || !is_harmless_normalizer(normalizer)) {
        fail(ErrorCode::unsupported,
             "{}: this combination of normalizer, pre_tokenizer and ignore_merges is not in spool's table of "
             "checked "
             "tokenizers (normalizer: {}; pre_tokenizer: {}; ignore_merges: {}); give a GGUF of the same "
             "model family "
             "with --tokenizer-from",
             tokenizer.source(), normalizer.empty() ? "none" : normalizer, steps.empty() ? "none" : steps,
             ignore_merges);
    }
    // The same cuts; the name tells the families apart, as llama.cpp's converter does.
    if (it->name == "qwen2" && has_added_token(tokenizer, "<｜begin▁of▁sentence｜>")) {
        return "deepseek-r1-qwen";
    }
    return std::string(it->name);
}

} // namespace spool
