// Models for tests: the default one, and tiny ones with random weights.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "core/log.h"
#include "eval/random_model.h"
#include "llm/model.h"
#include "support/data.h"

namespace spool::test {

/// A folder of this test's own, removed with everything in it at the end.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "spool-test-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

inline std::unique_ptr<Model> load_model(const std::filesystem::path& path) {
    set_log_level(LogLevel::warning);
    ModelOptions options;
    options.path = path;
    return std::make_unique<Model>(options);
}

/// Tests derive from this to get the default model, loaded once a test; they skip where it was not fetched.
class WithDefaultModel : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto path = default_model();
        if (!path) {
            GTEST_SKIP() << "the default model is absent: run `make model`";
        }
        model_ = load_model(*path);
    }
    std::unique_ptr<Model> model_;
};

} // namespace spool::test
