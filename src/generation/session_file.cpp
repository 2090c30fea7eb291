#include "generation/session_file.h"

#include <utility>

#include "context/saved_session.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "formats/gguf.h"

namespace spool {

namespace {

/// Everything that must agree between the run that saved and the run that restores, as flat JSON.
Json identity(SessionPool& pool, const Bundle* bundle) {
    const MemorySettings& s = pool.settings();
    return {{"model", pool.model().facts().description},
            {"model_fingerprint", pool.model().fingerprint()},
            {"bundle", bundle != nullptr ? sha256_file(bundle->folder / "bundle.json") : ""},
            {"strategy", to_string(s.strategy)},
            {"refresh", to_string(s.refresh)},
            {"pin", s.pin},
            {"window", s.window},
            {"chunk", s.chunk},
            {"max_distant", s.max_distant},
            {"max_slots", s.max_slots},
            {"max_position", s.max_position},
            {"cache_type_k", ggml_type_name(pool.options().key_type)},
            {"cache_type_v", ggml_type_name(pool.options().value_type)}};
}

void check_identity(const Json& found, const Json& expected, const std::filesystem::path& path) {
    std::string differences;
    for (const auto& [key, value] : expected.items()) {
        const Json other = found.value(key, Json());
        if (other != value) {
            differences +=
                fmt::format("\n  {}: the file has {}, this run has {}", key, other.dump(), value.dump());
        }
    }
    if (!differences.empty()) {
        fail(ErrorCode::incompatible,
             "{}: this session was saved with another model, bundle or settings; use the same, or another "
             "--session "
             "file:{}",
             path.string(), differences);
    }
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
}

} // namespace

void save_session(Session& session, SessionPool& pool, const Bundle* bundle,
                  const std::filesystem::path& path, const Json& chat) {
    const Transcript& t = session.transcript();
    const std::vector<std::byte> cache = session.save_cache();
    const std::vector<float> logits(session.logits().begin(), session.logits().end());

    GgufWriter writer;
    writer.set("general.architecture", std::string(session_architecture));
    writer.set("spool.version", session_version);
    writer.set("spool.session.identity", identity(pool, bundle).dump());
    writer.set("spool.session.pinned", static_cast<uint32_t>(t.pinned));
    writer.set("spool.session.window_start", static_cast<uint32_t>(t.window_start));
    writer.set("spool.session.evicted", static_cast<uint32_t>(t.evicted));
    writer.set("spool.session.soft_prompt", t.soft_prompt);
    writer.set("spool.session.next_position", static_cast<uint32_t>(t.next_position()));
    writer.set("spool.session.cache_sha256", sha256(cache));
    if (!chat.is_null()) {
        // A reply that was cut short may end within a character.
        writer.set("spool.session.chat", json_text(chat));
    }
    writer.add("transcript", GGML_TYPE_I32, {static_cast<int64_t>(t.tokens.size())}, bytes_of(t.tokens));
    if (!t.distant.empty()) {
        writer.add("distant", GGML_TYPE_I32, {static_cast<int64_t>(t.distant.size())}, bytes_of(t.distant));
    }
    writer.set("spool.session.slots_in_group", t.slots_in_group);
    writer.set("spool.session.slots_gone", static_cast<uint32_t>(t.slots_gone));
    if (!t.slots.empty()) {
        writer.add("slots", GGML_TYPE_I32, {static_cast<int64_t>(t.slots.size())}, bytes_of(t.slots));
    }
    writer.add("logits", GGML_TYPE_F32, {static_cast<int64_t>(logits.size())}, bytes_of(logits));
    writer.add("cache", GGML_TYPE_I8, {static_cast<int64_t>(cache.size())}, cache);
    writer.write(path);
    session.restore(Transcript(t), cache, logits);
}

Json restore_session(Session& session, SessionPool& pool, const Bundle* bundle,
                     const std::filesystem::path& path) {
    const GgufFile file(path);
    SavedSession saved = read_saved_session(file);
    check_identity(saved.identity, identity(pool, bundle), path);
    const auto vocab_size = static_cast<size_t>(pool.model().facts().vocab_size);
    if (saved.logits.size() != vocab_size || saved.transcript.pinned > pool.settings().pin) {
        fail(ErrorCode::bad_file,
             "{}: holds {} logits and {} pinned tokens, expected {} and at most {}; the file is damaged",
             path.string(), saved.logits.size(), saved.transcript.pinned, vocab_size, pool.settings().pin);
    }
    session.restore(std::move(saved.transcript), saved.cache, saved.logits);
    return saved.chat;
}

} // namespace spool
