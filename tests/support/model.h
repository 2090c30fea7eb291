// Models for tests: the default one, and tiny ones with random weights.
#pragma once

#include <filesystem>
#include <memory>

#include <gtest/gtest.h>

#include "core/log.h"
#include "eval/random_model.h"
#include "llm/model.h"
#include "support/data.h"

namespace spool::test {

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
