// Claim: the same seed gives the same sequence everywhere, and bounds hold.
#include "graph/base/random.h"

#include <gtest/gtest.h>

namespace eddy {
namespace {

TEST(RandomTest, SequencesDependOnTheSeedOnly) {
  Random a(1), b(1), c(2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t x = a.next();
    EXPECT_EQ(x, b.next());
    differs |= x != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(RandomTest, TheSequenceOfASeedNeverChanges) {
  Random random(42);
  EXPECT_EQ(random.next(), 1546998764402558742u);
}

TEST(RandomTest, BoundsHoldAndAllValuesOccur) {
  Random random(7);
  int count[5] = {};
  for (int i = 0; i < 5000; ++i) ++count[random.below(5)];
  for (int n : count) EXPECT_NEAR(n, 1000, 200);
  for (int i = 0; i < 1000; ++i) {
    const float x = random.uniform(-1.0f, 1.0f);
    EXPECT_GE(x, -1.0f);
    EXPECT_LT(x, 1.0f);
  }
}

}  // namespace
}  // namespace eddy
