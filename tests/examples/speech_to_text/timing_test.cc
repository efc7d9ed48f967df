// Claim: the line about times says what a further token takes only where most runs that stop after
// the first token were faster than all whole ones, so that no time is ever negative.
#include "examples/speech_to_text/timing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/base/random.h"

namespace eddy::speech {
namespace {

TEST(Timing, AFurtherTokenTakesItsPartOfTheRest) {
  EXPECT_EQ(describe({{52, 50, 51}, {31, 30, 90}}, 5, 1.42),
            "5 decoding steps, 50.0 ms for 1.4 s of sound: 30.0 ms to the first token, 5.00 ms for "
            "each further token");
}

TEST(Timing, WhatDrownsInNoiseIsLeftOut) {
  const std::string whole = "2 decoding steps, 50.0 ms for 1.0 s of sound";
  EXPECT_EQ(describe({{50}, {60}}, 2, 1), whole);
  EXPECT_EQ(describe({{50, 52}, {40, 50}}, 2, 1), whole);
  EXPECT_EQ(describe({{50, 52, 51}, {50, 40, 60}}, 2, 1), whole);
}

TEST(Timing, WithoutAFurtherTokenThereIsNoTimeOfIt) {
  EXPECT_EQ(describe({{50}, {40}}, 1, 1), "1 decoding step, 50.0 ms for 1.0 s of sound");
  EXPECT_EQ(describe({{50}, {40}}, 0, 0), "0 decoding steps, 50.0 ms for 0.0 s of sound");
}

TEST(Timing, NoTimeIsNegativeHoweverNoisyTheRuns) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    Timing timing;
    for (int i = 0; i < 3; ++i) {
      timing.whole_ms.push_back(random.uniform(1, 2));
      timing.first_token_ms.push_back(random.uniform(0.5f, 2));
    }
    const std::string line = describe(timing, 2, 1);
    EXPECT_EQ(line.find('-'), std::string::npos) << "seed " << seed << ": " << line;
    const double fastest = std::ranges::min(timing.whole_ms);
    const bool is_clear =
        std::ranges::count_if(timing.first_token_ms, [&](double ms) { return ms < fastest; }) >= 2;
    EXPECT_EQ(line.find("further") != std::string::npos, is_clear) << "seed " << seed;
  }
}

}  // namespace
}  // namespace eddy::speech
