#include "generation/session_file.h"

#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "formats/gguf.h"

namespace spool {

namespace {

constexpr uint32_t session_version = 1;

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
            {"max_position", s.max_position},
            {"cache_type_k", ggml_type_name(pool.options().key_type)},
            {"cache_type_v", ggml_type_name(pool.options().value_type)}};
}

void check_identity(const std::string& text, const Json& expected, const std::filesystem::path& path) {
    const Json found = Json::parse(text, nullptr, false);
    if (!found.is_object()) {
        fail(ErrorCode::bad_file, "{}: spool.session.identity is not a JSON object", path.string());
    }
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

size_t unsigned_key(const GgufFile& file, std::string_view key) { return file.u32(key); }

/// The transcript, checked against itself and the vocabulary: no index in it can be out of range afterwards.
Transcript read_transcript(const GgufFile& file, const MemorySettings& settings, int32_t vocab_size) {
    Transcript t;
    t.tokens = tensor_values<Token>(file, "transcript", GGML_TYPE_I32);
    const auto distant = tensor_values<int32_t>(file, "distant", GGML_TYPE_I32);
    t.distant.assign(distant.begin(), distant.end());
    t.pinned = unsigned_key(file, "spool.session.pinned");
    t.window_start = unsigned_key(file, "spool.session.window_start");
    t.evicted = unsigned_key(file, "spool.session.evicted");
    t.soft_prompt = file.u32("spool.session.soft_prompt");
    t.position_offset =
        static_cast<int64_t>(file.u32("spool.session.next_position")) - static_cast<int64_t>(t.tokens.size());

    const auto damaged = [&](const char* what) {
        fail(ErrorCode::bad_file, "{}: {}; the file is damaged", file.path().string(), what);
    };
    if (t.tokens.empty() || t.pinned > t.window_start || t.window_start > t.tokens.size() ||
        t.pinned > settings.pin) {
        damaged("pinned, window and transcript lengths contradict each other");
    }
    for (const Token token : t.tokens) {
        if (token < 0 || token >= vocab_size) {
            damaged("a token of the transcript is outside the vocabulary");
        }
    }
    for (size_t j = 0; j < t.distant.size(); ++j) {
        if (t.distant[j] < t.pinned || t.distant[j] >= t.window_start ||
            (j > 0 && t.distant[j] <= t.distant[j - 1])) {
            damaged("the distant buffer is not an ascending list of tokens before the window");
        }
    }
    return t;
}

} // namespace

void save_session(Session& session, SessionPool& pool, const Bundle* bundle,
                  const std::filesystem::path& path) {
    const Transcript& t = session.transcript();
    const std::vector<std::byte> cache = session.save_cache();
    const std::vector<float> logits(session.logits().begin(), session.logits().end());

    GgufWriter writer;
    writer.set("general.architecture", std::string("spool-session"));
    writer.set("spool.version", session_version);
    writer.set("spool.session.identity", identity(pool, bundle).dump());
    writer.set("spool.session.pinned", static_cast<uint32_t>(t.pinned));
    writer.set("spool.session.window_start", static_cast<uint32_t>(t.window_start));
    writer.set("spool.session.evicted", static_cast<uint32_t>(t.evicted));
    writer.set("spool.session.soft_prompt", t.soft_prompt);
    writer.set("spool.session.next_position", static_cast<uint32_t>(t.next_position()));
    writer.set("spool.session.cache_sha256", sha256(cache));
    writer.add("transcript", GGML_TYPE_I32, {static_cast<int64_t>(t.tokens.size())}, bytes_of(t.tokens));
    if (!t.distant.empty()) {
        writer.add("distant", GGML_TYPE_I32, {static_cast<int64_t>(t.distant.size())}, bytes_of(t.distant));
    }
    writer.add("logits", GGML_TYPE_F32, {static_cast<int64_t>(logits.size())}, bytes_of(logits));
    writer.add("cache", GGML_TYPE_I8, {static_cast<int64_t>(cache.size())}, cache);
    writer.write(path);
    session.restore(Transcript(t), cache, logits);
}

void restore_session(Session& session, SessionPool& pool, const Bundle* bundle,
                     const std::filesystem::path& path) {
    const GgufFile file(path);
    if (file.optional_string("general.architecture") != "spool-session") {
        fail(ErrorCode::bad_file, "{}: is not a spool session", path.string());
    }
    if (const uint32_t version = file.u32("spool.version"); version != session_version) {
        fail(ErrorCode::bad_file, "{}: has session version {}, this spool reads version {}", path.string(),
             version, session_version);
    }
    check_identity(file.string("spool.session.identity"), identity(pool, bundle), path);
    Transcript transcript = read_transcript(file, pool.settings(), pool.model().facts().vocab_size);
    const auto logits = tensor_values<float>(file, "logits", GGML_TYPE_F32);
    const GgufTensor* cache = file.find_tensor("cache");
    if (cache == nullptr || sha256(cache->data) != file.string("spool.session.cache_sha256") ||
        logits.size() != static_cast<size_t>(pool.model().facts().vocab_size)) {
        fail(ErrorCode::bad_file, "{}: the saved cache or logits are missing or damaged", path.string());
    }
    session.restore(std::move(transcript), cache->data, logits);
}

} // namespace spool
