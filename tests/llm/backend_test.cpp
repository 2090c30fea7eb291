#include <ggml-cpu.h>
#include <gtest/gtest.h>

#include "llm/backend.h"

namespace spool {
namespace {

TEST(Backend, AmxIsOffBecauseGccTwelveMiscompilesIt) { EXPECT_EQ(ggml_cpu_has_amx_int8(), 0); }

TEST(Backend, ThereIsAtLeastOnePhysicalCore) { EXPECT_GE(physical_cores(), 1); }

} // namespace
} // namespace spool
