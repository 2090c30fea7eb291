#include "context/saved_session.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/hash.h"

namespace spool {

namespace {

[[noreturn]] void damaged(const GgufFile& file, const char* what) {
    fail(ErrorCode::bad_file, "{}: {}; the file is damaged", file.path().string(), what);
}

void check_kind(const GgufFile& file) {
    if (file.optional_string("general.architecture") != session_architecture) {
        fail(ErrorCode::bad_file, "{}: is not a spool session", file.path().string());
    }
    if (const uint32_t version = file.u32("spool.version"); version != session_version) {
        fail(ErrorCode::bad_file, "{}: has session version {}, this spool reads version {}",
             file.path().string(), version, session_version);
    }
}

Json read_chat(const GgufFile& file) {
    constexpr const char* key = "spool.session.chat";
    if (file.find(key) == nullptr) {
        return {};
    }
    Json chat = Json::parse(file.string(key), nullptr, false);
    if (chat.is_discarded()) {
        fail(ErrorCode::bad_file, "{}: {} is not JSON", file.path().string(), key);
    }
    return chat;
}

Json read_identity(const GgufFile& file) {
    Json identity = Json::parse(file.string("spool.session.identity"), nullptr, false);
    if (!identity.is_object()) {
        fail(ErrorCode::bad_file, "{}: spool.session.identity is not a JSON object", file.path().string());
    }
    return identity;
}

template <typename T>
std::vector<T> tensor_values(const GgufFile& file, std::string_view name, ggml_type type) {
    const GgufTensor* tensor = file.find_tensor(name);
    if (tensor == nullptr) {
        return {};
    }
    if (tensor->type != type || tensor->ne.size() > 1) {
        fail(ErrorCode::bad_file, "{}: tensor {} is not a vector of {}", file.path().string(), name,
             ggml_type_name(type));
    }
    std::vector<T> values(tensor->data.size() / sizeof(T));
    std::copy_n(tensor->data.data(), values.size() * sizeof(T), reinterpret_cast<std::byte*>(values.data()));
    return values;
}

Transcript read_transcript(const GgufFile& file) {
    Transcript t;
    t.tokens = tensor_values<Token>(file, "transcript", GGML_TYPE_I32);
    const auto distant = tensor_values<int32_t>(file, "distant", GGML_TYPE_I32);
    t.distant.assign(distant.begin(), distant.end());
    t.pinned = file.u32("spool.session.pinned");
    t.window_start = file.u32("spool.session.window_start");
    t.evicted = file.u32("spool.session.evicted");
    t.soft_prompt = file.u32("spool.session.soft_prompt");
    const auto slots = tensor_values<int32_t>(file, "slots", GGML_TYPE_I32);
    t.slots.assign(slots.begin(), slots.end());
    t.slots_in_group = file.u32("spool.session.slots_in_group");
    t.slots_gone = file.u32("spool.session.slots_gone");
    t.position_offset = static_cast<int64_t>(file.u32("spool.session.next_position")) -
                        static_cast<int64_t>(t.tokens.size()) -
                        static_cast<int64_t>(t.slots.size()) * int64_t{t.slots_in_group};
    return t;
}

void check(const Transcript& t, size_t vocab_size, const GgufFile& file) {
    if (t.tokens.empty() || t.pinned > t.window_start || t.window_start > t.tokens.size()) {
        damaged(file, "pinned, window and transcript lengths contradict each other");
    }
    for (const Token token : t.tokens) {
        if (token < 0 || static_cast<size_t>(token) >= vocab_size) {
            damaged(file, "a token of the transcript is outside the vocabulary");
        }
    }
    if (!std::ranges::is_sorted(t.slots) || (!t.slots.empty() && t.slots.back() > t.tokens.size()) ||
        t.slots_gone > t.slots.size()) {
        damaged(file, "the slots are not an ascending list of places in the transcript");
    }
    for (size_t j = 0; j < t.distant.size(); ++j) {
        if (t.distant[j] < t.pinned || t.distant[j] >= t.window_start ||
            (j > 0 && t.distant[j] <= t.distant[j - 1])) {
            damaged(file, "the distant buffer is not an ascending list of tokens before the window");
        }
    }
}

} // namespace

SavedSession read_saved_session(const GgufFile& file) {
    check_kind(file);
    SavedSession saved;
    saved.identity = read_identity(file);
    saved.chat = read_chat(file);
    saved.transcript = read_transcript(file);
    saved.logits = tensor_values<float>(file, "logits", GGML_TYPE_F32);
    check(saved.transcript, saved.logits.size(), file);
    const GgufTensor* cache = file.find_tensor("cache");
    if (cache == nullptr || sha256(cache->data) != file.string("spool.session.cache_sha256")) {
        damaged(file, "the saved cache is missing or has another hash");
    }
    saved.cache = cache->data;
    return saved;
}

} // namespace spool
