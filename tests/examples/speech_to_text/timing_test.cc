// Claim: the line of totals always has the time of a token, and the time of a further one only from
// pieces in which the runs to the first token were mostly faster than all whole ones, so that no
// time is ever negative.
#include "examples/speech_to_text/timing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/base/random.h"

namespace eddy::speech {
namespace {

std::string describe(const Timing& timing, size_t num_words, size_t num_steps, double sound_s) {
  Totals totals;
  totals.add(timing, num_words, num_steps, sound_s);
  return totals.describe();
}

TEST(Totals, AFurtherTokenTakesItsPartOfTheRest) {
  EXPECT_EQ(
      describe({{52, 50, 51}, {31, 30, 90}}, 2, 5, 1.42),
      "2 words, 5 decoding steps, 50.0 ms for 1.4 s of speech: 10.00 ms per token (30.0 ms to "
      "the first, 5.00 ms for each further one)");
}

TEST(Totals, PiecesAreAddedUp) {
  Totals totals;
  totals.add({{50}, {30}}, 2, 5, 1.5);
  totals.add({{100, 90}, {50}}, 10, 11, 3);
  totals.add({{60}, {}}, 3, 4, 2);  // once: no further tokens known
  EXPECT_EQ(
      totals.describe(),
      "15 words, 20 decoding steps, 200.0 ms for 6.5 s of speech: 10.00 ms per token (40.0 ms "
      "to the first, 4.29 ms for each further one)");
}

TEST(Totals, WhatDrownsInNoiseIsLeftOutButTheTimePerToken) {
  const std::string whole =
      "1 word, 2 decoding steps, 50.0 ms for 1.0 s of speech: 25.00 ms per token";
  EXPECT_EQ(describe({{50}, {60}}, 1, 2, 1), whole);
  EXPECT_EQ(describe({{50, 52}, {40, 50}}, 1, 2, 1), whole);
  EXPECT_EQ(describe({{50, 52, 51}, {50, 40, 60}}, 1, 2, 1), whole);
  EXPECT_EQ(describe({{50}, {}}, 1, 2, 1), whole);
}

TEST(Totals, OneStepOrNoneHasNoFurther) {
  EXPECT_EQ(describe({{50}, {40}}, 0, 1, 1),
            "0 words, 1 decoding step, 50.0 ms for 1.0 s of speech: 50.00 ms per token");
  EXPECT_EQ(describe({{50}, {40}}, 0, 0, 1),
            "0 words, 0 decoding steps, 50.0 ms for 1.0 s of speech");
  EXPECT_EQ(Totals().describe(), "0 words, 0 decoding steps, 0.0 ms for 0.0 s of speech");
}

TEST(Totals, NoTimeIsNegativeHoweverNoisyTheRuns) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    Timing timing;
    for (int i = 0; i < 3; ++i) {
      timing.whole_ms.push_back(random.uniform(1, 2));
      timing.first_token_ms.push_back(random.uniform(0.5f, 2));
    }
    const std::string line = describe(timing, 1, 2, 1);
    EXPECT_EQ(line.find('-'), std::string::npos) << "seed " << seed << ": " << line;
    const double fastest = std::ranges::min(timing.whole_ms);
    const bool is_clear =
        std::ranges::count_if(timing.first_token_ms, [&](double ms) { return ms < fastest; }) >= 2;
    EXPECT_EQ(line.find("further") != std::string::npos, is_clear) << "seed " << seed;
    EXPECT_NE(line.find("ms per token"), std::string::npos) << "seed " << seed;
  }
}

TEST(Words, AreWhatSpacesLeave) {
  EXPECT_EQ(count_words(""), 0u);
  EXPECT_EQ(count_words(" \t\n"), 0u);
  EXPECT_EQ(count_words("Front, center."), 2u);
  EXPECT_EQ(count_words("  a \xc3\xa9\xc3\xa0 - b"), 4u);
}

}  // namespace
}  // namespace eddy::speech
