#include <csignal>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "generation/generate.h"
#include "generation/session_file.h"
#include "support/model.h"
#include "support/slots_bundle.h"
#include "support/small_model.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

class SessionFileTest : public test::WithDefaultModel {
  protected:
    PoolOptions options(StrategyKind strategy = StrategyKind::soft_prompt) const {
        PoolOptions o;
        o.memory.strategy = strategy;
        o.memory.window = 96;
        o.memory.chunk = 48;
        o.memory.max_distant = 128;
        o.memory.pin = 8;
        o.memory.full_length = 1024;
        o.threads = 2;
        return o;
    }
    void SetUp() override {
        WithDefaultModel::SetUp();
        if (!IsSkipped()) {
            bundle_ = read_bundle(test::fixture("../models/smollm2-bundle"));
            tokenizer_ = std::make_unique<Tokenizer>(*model_);
        }
    }
    std::vector<Token> generate_tokens(Session& session, size_t count, float temperature = 0) {
        SamplerOptions sampling;
        sampling.temperature = temperature;
        sampling.ignore_end = true;
        sampling.seed = 5;
        Sampler sampler(*tokenizer_, sampling);
        sampler.restart(session.transcript().tokens, session.transcript().tokens.size());
        GenerationOptions generation;
        generation.max_tokens = count;
        generation.repeat_limit = 0;
        return generate(session, sampler, *tokenizer_, generation, nullptr).tokens;
    }
    std::vector<Token> prompt() const {
        return tokenizer_->encode("Once upon a time there was a fox who lived by the river", true, false);
    }

    test::TemporaryFolder folder_;
    Bundle bundle_;
    std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(SessionFileTest, OutputAfterARestoreEqualsTheRunThatSavedAndWentOn) {
    for (const auto strategy : {StrategyKind::full, StrategyKind::window, StrategyKind::soft_prompt}) {
        for (const float temperature : {0.0F, 0.9F}) {
            const auto file = folder_ / "a.spool";
            std::vector<Token> went_on;
            Transcript transcript;
            {
                SessionPool pool(*model_, &bundle_, options(strategy));
                const auto session = pool.open();
                session->read(prompt());
                generate_tokens(*session, 300);
                save_session(*session, pool, &bundle_, file);
                went_on = generate_tokens(*session, 200, temperature);
                transcript = session->transcript();
            }
            SessionPool pool(*model_, &bundle_, options(strategy));
            const auto session = pool.open();
            restore_session(*session, pool, &bundle_, file);
            EXPECT_EQ(generate_tokens(*session, 200, temperature), went_on) << to_string(strategy);
            EXPECT_EQ(session->transcript().distant, transcript.distant);
            EXPECT_EQ(session->transcript().window_start, transcript.window_start);
        }
    }
}

TEST_F(SessionFileTest, OtherSettingsAreRefusedByName) {
    const auto file = folder_ / "a.spool";
    {
        SessionPool pool(*model_, &bundle_, options());
        const auto session = pool.open();
        session->read(prompt());
        save_session(*session, pool, &bundle_, file);
    }
    auto other = options();
    other.memory.window = 100;
    SessionPool pool(*model_, &bundle_, other);
    const auto session = pool.open();
    try {
        restore_session(*session, pool, &bundle_, file);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::incompatible);
        EXPECT_NE(std::string(error.what()).find("window: the file has 96, this run has 100"),
                  std::string::npos)
            << error.what();
    }
}

TEST_F(SessionFileTest, EveryTruncationAndFlippedCacheByteIsAnErrorAndLeavesTheSessionUsable) {
    const auto file = folder_ / "a.spool";
    SessionPool pool(*model_, &bundle_, options());
    {
        const auto session = pool.open();
        session->read(prompt());
        save_session(*session, pool, &bundle_, file);
    }
    const std::string good = read_text(file);
    for (size_t cut = 0; cut < good.size(); cut += good.size() / 23 + 1) {
        write_text(file, good.substr(0, cut));
        const auto session = pool.open();
        EXPECT_THROW(restore_session(*session, pool, &bundle_, file), Error) << "cut at " << cut;
        session->read(prompt());
    }
    std::string flipped = good;
    flipped[good.size() - 5000] = static_cast<char>(flipped[good.size() - 5000] ^ 1);
    write_text(file, flipped);
    const auto session = pool.open();
    EXPECT_THROW(restore_session(*session, pool, &bundle_, file), Error);
}

TEST_F(SessionFileTest, AFailedSaveLeavesTheOldFile) {
    const auto file = folder_ / "sub" / "a.spool";
    std::filesystem::create_directory(folder_ / "sub");
    SessionPool pool(*model_, &bundle_, options());
    const auto session = pool.open();
    session->read(prompt());
    save_session(*session, pool, &bundle_, file);
    const std::string before = read_text(file);

    // A killed writer: the child leaves a partial file behind, the old one stays whole.
    const pid_t child = ::fork();
    if (child == 0) {
        AtomicFile partial(file);
        partial.write("half");
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(read_text(file), before);
    restore_session(*session, pool, &bundle_, file);
}

class SlotsSessionFileTest : public test::WithSmallModel {};

TEST_F(SlotsSessionFileTest, SlotsAreSavedAndRestoredWithTheirPlaces) {
    const Bundle bundle = test::write_slots_bundle(folder_ / "bundle", *model_, 3);
    PoolOptions options;
    options.memory.strategy = StrategyKind::slots;
    options.memory.window = 24;
    options.memory.chunk = 16;
    options.memory.max_slots = 12;
    options.memory.pin = 5;
    options.threads = 1;
    std::vector<Token> text(500);
    for (size_t i = 0; i < text.size(); ++i) {
        text[i] = static_cast<Token>(i * 37 % 256);
    }
    const auto rest = [&](Session& session) {
        session.read(std::span(text).subspan(211));
        return std::vector(session.logits().begin(), session.logits().end());
    };
    std::vector<float> went_on;
    {
        SessionPool pool(*model_, &bundle, options);
        const auto session = pool.open();
        session->read(std::span(text).first(211));
        save_session(*session, pool, &bundle, folder_ / "a.spool", {{"note", "kept"}});
        went_on = rest(*session);
    }
    SessionPool pool(*model_, &bundle, options);
    const auto session = pool.open();
    EXPECT_EQ(restore_session(*session, pool, &bundle, folder_ / "a.spool"), Json({{"note", "kept"}}));
    EXPECT_EQ(session->transcript().slot_groups(), 4U);
    EXPECT_GT(session->transcript().evicted, 0U);
    EXPECT_EQ(rest(*session), went_on);
}

} // namespace
} // namespace spool
