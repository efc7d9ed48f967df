// Claim: kernels take no instructions beyond the limit of the environment, and limits nest.
#include "ops/cpu/isa/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "ops/cpu/byte_tile/byte_tile.h"
#include "ops/cpu/loops/loops.h"
#include "ops/cpu/tile/tile.h"

namespace eddy::cpu {
namespace {

int count(const Instructions& all) {
  return all.has_avx2 + all.has_avx512 + all.has_vnni + all.has_amx;
}

TEST(Instructions, EachLimitAllowsWhatTheOneBeforeDoesAndAtMostOneMore) {
  int before = 0;
  for (const char* limit : {"baseline", "avx2", "avx512", "vnni", "amx"}) {
    const Instructions all = instructions_within(limit);
    EXPECT_TRUE(all.is_known) << limit;
    EXPECT_GE(count(all), before) << limit;
    EXPECT_LE(count(all), before + 1) << limit;
    EXPECT_TRUE(all.has_avx2 || !all.has_avx512) << limit;
    before = count(all);
  }
  EXPECT_EQ(count(instructions_within("baseline")), 0);
  EXPECT_EQ(count(instructions_within("")), before);
}

TEST(Instructions, ALimitOfAnotherNameAllowsTheBaselineAndIsNotKnown) {
  const Instructions all = instructions_within("AVX2");
  EXPECT_FALSE(all.is_known);
  EXPECT_EQ(count(all), 0);
}

TEST(Instructions, EverySetOfLoopsKeepsToTheLimitOfTheEnvironment) {
  // Before the first call: the limit is read once.
  ASSERT_EQ(setenv("EDDY_INSTRUCTIONS", "baseline", 1), 0);
  EXPECT_EQ(count(instructions()), 0);
  EXPECT_EQ(tile_kernels().isa, Isa::kBaseline);
  EXPECT_EQ(tile_kernels_or_null(Isa::kAvx2), nullptr);
  EXPECT_EQ(loop_set_or_null(Isa::kAvx512), nullptr);
  EXPECT_EQ(&loop_set(), loop_set_or_null(Isa::kBaseline));
  EXPECT_EQ(byte_tile_kernels_or_null(ByteIsa::kAvx2), nullptr);
  EXPECT_EQ(instructions_text().find("avx"), std::string::npos);
}

}  // namespace
}  // namespace eddy::cpu
