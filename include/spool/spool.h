// spool as a library: language models that think on in constant memory.
//
//     spool::Engine engine({.model = "model.gguf"});
//     spool::EngineSession session = engine.new_session();
//     session.read("Once upon a time");
//     session.generate({.max_tokens = 100}, [](std::string_view text) { std::cout << text; return true; });
//
// All functions throw spool::Error. An engine and its sessions belong to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <spool/error.h>

namespace spool {

/// Empty or zero means: the bundle's trained value, else the default in brackets.
struct EngineOptions {
    std::string model{};      ///< a GGUF file
    std::string bundle{};     ///< a bundle's folder; empty: none
    std::string strategy{};   ///< "full", "window" or "soft-prompt" [with a bundle soft-prompt, else window]
    std::string refresh{};    ///< "rebuild" or "carry"
    uint32_t window = 0;      ///< recent tokens kept verbatim [512]
    uint32_t chunk = 0;       ///< tokens between two compactions [64]
    uint32_t pin = 256;       ///< first tokens of a session that are never evicted, at most
    uint32_t max_distant = 0; ///< tokens the distant buffer keeps [4096]
    uint32_t sessions = 1;    ///< sessions that may be open at once; memory is reserved for all
    int threads = 0;          ///< [physical cores]
    int gpu_layers = -1;      ///< layers on the GPU; negative: all that fit
};

struct GenerateOptions {
    size_t max_tokens = 256;
    double max_seconds = 0;   ///< 0: no limit
    float temperature = 0.8F; ///< 0: greedy
    int top_k = 40;
    float top_p = 0.95F;
    float min_p = 0.05F;
    uint32_t seed = 0;
    bool ignore_eos = false;
    std::vector<std::string> stop{};
    std::string grammar{}; ///< GBNF
};

struct GenerateResult {
    std::string text;
    size_t tokens = 0;
    std::string
        stop_reason; ///< "end_token", "max_tokens", "time_limit", "repetition", "stop_string", "caller"
};

/// Bytes, reserved when the engine is made; they never grow.
struct EngineMemory {
    size_t model = 0;
    size_t kv = 0;
    size_t compute = 0;
    size_t pooler = 0;
};

class Engine;

/// One chain of thought or conversation. The engine must outlive it.
class SPOOL_API EngineSession {
  public:
    EngineSession(EngineSession&&) noexcept;
    EngineSession& operator=(EngineSession&&) noexcept;
    ~EngineSession();

    /// Reads text of any length; the first call's first tokens are pinned.
    void read(std::string_view text);
    /// Continues; `on_text` gets whole UTF-8 characters as they come and returns false to stop.
    GenerateResult generate(const GenerateOptions& options,
                            const std::function<bool(std::string_view)>& on_text = nullptr);
    /// Tokens read and generated so far.
    size_t length() const;
    /// KV cells in use now; bounded however long the session is.
    size_t cells_used() const;
    void save(const std::string& path);
    /// Only into a session of an engine with the same model, bundle and settings.
    void restore(const std::string& path);

  private:
    friend class Engine;
    struct Implementation;
    explicit EngineSession(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> implementation_;
};

class SPOOL_API Engine {
  public:
    explicit Engine(const EngineOptions& options);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Throws Error{out_of_memory} when options.sessions are open.
    EngineSession new_session();
    EngineMemory memory() const;

  private:
    friend class EngineSession;
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

} // namespace spool
