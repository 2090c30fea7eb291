// -hf and `spool pull` against a hub on this machine: what is fetched, when, and what faults do.
#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "support/hub.h"
#include "support/program.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::ProgramResult;

class HubTest : public ::testing::Test {
  protected:
    HubTest() {
        ::setenv("HF_ENDPOINT", hub_.url().c_str(), 1);
        ::setenv("HF_HUB_CACHE", cache().c_str(), 1);
        ::unsetenv("MODEL_ENDPOINT");
        ::unsetenv("LLAMA_CACHE");
        ::unsetenv("HF_TOKEN");
        hub_.files["small-Q8_0.gguf"] = {.content = model_};
        hub_.files["small-F32.gguf"] = {.content = model_ + "x"};
        hub_.files["README.md"] = {.content = "About it.", .large = false};
    }

    std::string cache() const { return (folder_ / "cache").string(); }
    static ProgramResult run(const std::vector<std::string>& model,
                             const std::vector<std::string>& more = {}) {
        std::vector<std::string> all = {"run", "-p", "abc", "-n", "3", "--ignore-eos", "--json"};
        all.insert(all.end(), model.begin(), model.end());
        all.insert(all.end(), more.begin(), more.end());
        return test::run_spool(all);
    }
    /// Files in the cache folder whose path ends in `ending`.
    size_t cached(const std::string& ending) const {
        size_t count = 0;
        if (std::filesystem::exists(cache())) {
            for (const auto& entry : std::filesystem::recursive_directory_iterator(cache())) {
                count += entry.path().string().ends_with(ending) ? 1U : 0U;
            }
        }
        return count;
    }

    test::TemporaryFolder folder_;
    std::string model_ = read_text(test::write_small_model(folder_));
    test::Hub hub_;
};

TEST_F(HubTest, AModelIsFetchedOnceAndThenTakenFromTheCache) {
    const auto first = run({"-hf", "tester/things"});
    ASSERT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(first.json()["tokens"], 3);
    EXPECT_EQ(hub_.bytes_sent, model_.size());
    ASSERT_EQ(run({"-hf", "tester/things:Q8_0"}).exit_code, 0);
    EXPECT_EQ(hub_.bytes_sent, model_.size());
    hub_.stop();
    const auto alone = run({"-hf", "tester/things"});
    EXPECT_EQ(alone.exit_code, 0) << alone.err;
    const auto offline = run({"-hf", "tester/things", "--offline"});
    EXPECT_EQ(offline.exit_code, 0) << offline.err;
}

TEST_F(HubTest, QuantAndFileChooseAndWhatThereIsIsNamed) {
    ASSERT_EQ(run({"-hf", "tester/things:F32"}).exit_code, 0);
    EXPECT_EQ(hub_.bytes_sent, model_.size() + 1);
    ASSERT_EQ(run({"-hf", "tester/things", "-hff", "small-Q8_0.gguf"}).exit_code, 0);
    EXPECT_EQ(hub_.bytes_sent, 2 * model_.size() + 1);
    const auto absent = run({"-hf", "tester/things:Q2_K"});
    EXPECT_EQ(absent.exit_code, 1);
    EXPECT_NE(absent.err.find("small-F32.gguf, small-Q8_0.gguf"), std::string::npos) << absent.err;
    EXPECT_EQ(run({"-hf", "tester/things", "--hf-file", "other.gguf"}).exit_code, 1);
}

TEST_F(HubTest, ACutConnectionIsResumedWithinTheSameCommand) {
    hub_.cut_after = model_.size() / 2;
    hub_.cuts = 1;
    const auto resumed = run({"-hf", "tester/things"});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(hub_.requests, 2U);
    EXPECT_EQ(hub_.bytes_sent, model_.size()) << "nothing is fetched twice";
}

TEST_F(HubTest, WhatADownloadThatBrokeOffHasIsUsedByTheNextCommand) {
    hub_.cut_after = model_.size() / 5;
    hub_.cuts = 3;
    const auto broken = run({"-hf", "tester/things"});
    EXPECT_EQ(broken.exit_code, 1);
    EXPECT_NE(broken.err.find("goes on from there"), std::string::npos) << broken.err;
    EXPECT_EQ(cached("downloadInProgress"), 1U);
    EXPECT_EQ(hub_.bytes_sent, 3 * (model_.size() / 5));
    ASSERT_EQ(run({"-hf", "tester/things"}).exit_code, 0);
    EXPECT_EQ(hub_.bytes_sent, model_.size());
    EXPECT_EQ(cached("downloadInProgress"), 0U);
}

TEST_F(HubTest, ADownloadKilledAfterItsLastByteIsComplete) {
    const auto blobs = std::filesystem::path(cache()) / "models--tester--things" / "blobs";
    std::filesystem::create_directories(blobs);
    write_text(blobs / (sha256(std::as_bytes(std::span(model_))) + ".downloadInProgress"), model_);
    const auto result = run({"-hf", "tester/things"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(hub_.bytes_sent, 0U);
}

TEST_F(HubTest, AWrongHashIsNamedAndTheFileRemoved) {
    hub_.files["small-Q8_0.gguf"].sent = std::string(model_.size(), 'z');
    const auto wrong = run({"-hf", "tester/things"});
    EXPECT_EQ(wrong.exit_code, 1);
    EXPECT_NE(wrong.err.find("small-Q8_0.gguf"), std::string::npos) << wrong.err;
    EXPECT_NE(wrong.err.find(sha256(std::as_bytes(std::span(model_)))), std::string::npos) << wrong.err;
    EXPECT_EQ(cached(".gguf"), 0U);
    hub_.files["small-Q8_0.gguf"].sent.clear();
    EXPECT_EQ(run({"-hf", "tester/things"}).exit_code, 0);
}

TEST_F(HubTest, UnknownNamesAndForms) {
    const auto unknown = run({"-hf", "tester/nothing"});
    EXPECT_EQ(unknown.exit_code, 1);
    EXPECT_NE(unknown.err.find("tester/nothing"), std::string::npos) << unknown.err;
    EXPECT_NE(unknown.err.find(hub_.url()), std::string::npos) << unknown.err;
    EXPECT_EQ(run({"-hf", "nothing"}).exit_code, 2);
    EXPECT_EQ(run({"-hf", "tester/things", "-m", "model.gguf"}).exit_code, 2);
    const auto offline = run({"-hf", "tester/things", "--offline"});
    EXPECT_EQ(offline.exit_code, 1);
    EXPECT_EQ(hub_.requests, 0U);
}

TEST_F(HubTest, ATokenGoesToTheHubAndStaysOutOfMessages) {
    const std::string token = "hf_" + std::string(34, 'a');
    const auto result = run({"-hf", "tester/things", "-hft", token});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(hub_.last_authorization(), "Bearer " + token);
    EXPECT_EQ((result.err + result.out).find(token), std::string::npos);
}

TEST_F(HubTest, PullFetchesABundlesFilesAndPrintsTheFolder) {
    hub_.files["pooler/pooler.safetensors"] = {.content = std::string(100'000, 'p')};
    hub_.files["pooler/pooler_config.json"] = {.content = "{\"heads\": 8}", .large = false};
    hub_.files["picture.png"] = {.content = "png"};
    hub_.cut_after = 40'000;
    hub_.cuts = 1;
    const auto pulled = test::run_spool({"pull", "tester/things"});
    ASSERT_EQ(pulled.exit_code, 0) << pulled.err;
    const std::filesystem::path folder = pulled.out.substr(0, pulled.out.find('\n'));
    EXPECT_EQ(read_text(folder / "pooler/pooler.safetensors"), std::string(100'000, 'p'));
    EXPECT_EQ(read_text(folder / "pooler/pooler_config.json"), "{\"heads\": 8}");
    EXPECT_FALSE(std::filesystem::exists(folder / "picture.png"));
    EXPECT_FALSE(std::filesystem::exists(folder / "README.md"));
    const size_t requests = hub_.requests;
    EXPECT_EQ(test::run_spool({"pull", "tester/things", "--json"}).json()["folder"], folder.string());
    EXPECT_EQ(hub_.requests, requests);
    ASSERT_EQ(test::run_spool({"pull", "tester/things", "--file", "README.md"}).exit_code, 0);
    EXPECT_EQ(read_text(folder / "README.md"), "About it.");
}

TEST_F(HubTest, PullComparesSmallFilesToo) {
    hub_.files["pooler_config.json"] = {
        .content = "{\"heads\": 8}", .large = false, .sent = "{\"heads\": 9}"};
    const auto pulled = test::run_spool({"pull", "tester/things"});
    EXPECT_EQ(pulled.exit_code, 1);
    EXPECT_NE(pulled.err.find("pooler_config.json"), std::string::npos) << pulled.err;
    EXPECT_EQ(cached("pooler_config.json"), 0U);
}

} // namespace
} // namespace spool
