// Where tests find data that is not part of the repository. A test that needs it skips when it is absent.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace spool::test {

/// `name` under $SPOOL_SHARED_DATA, else under ../shared/data beside the checkout.
inline std::optional<std::filesystem::path> shared_data(const std::string& name) {
    const char* folder = std::getenv("SPOOL_SHARED_DATA");
    const auto root = folder != nullptr ? std::filesystem::path(folder)
                                        : std::filesystem::path(SPOOL_SOURCE_DIR) / ".." / "shared" / "data";
    const auto path = root / name;
    return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

/// The default model, once `make model` has fetched it.
inline std::optional<std::filesystem::path> default_model() {
    const auto path = std::filesystem::path(SPOOL_SOURCE_DIR) / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
    return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

/// The default embedder, once `make embedder` has fetched and converted it.
inline std::optional<std::filesystem::path> default_embedder() {
    const auto path = std::filesystem::path(SPOOL_SOURCE_DIR) / "models" / "all-MiniLM-L6-v2.gguf";
    return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

/// A fixture kept beside the tests: tests/<layer>/data/<name>.
inline std::filesystem::path fixture(const std::string& name) {
    return std::filesystem::path(SPOOL_SOURCE_DIR) / "tests" / name;
}

} // namespace spool::test
