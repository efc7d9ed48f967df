// Claim: numbers are those of a map filled in the order of asking, round after round, whatever keys
// meet in the table.
#include "graph/base/numbering.h"

#include <gtest/gtest.h>

#include <map>

#include "graph/base/random.h"

namespace eddy {
namespace {

TEST(NumberingTest, NumbersAreThoseOfAMapInTheOrderOfAsking) {
  constexpr uint64_t kSeed = 20;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  Numbering<uint64_t> numbers;
  for (int round = 0; round < 200; ++round) {
    std::map<uint64_t, uint32_t> expected;
    const uint64_t num_asked = random.below(300);
    const uint64_t num_keys = 1 + random.below(200);
    const unsigned shift = static_cast<unsigned>(random.below(40));  // multiples: close in no hash
    for (uint64_t i = 0; i < num_asked; ++i) {
      const uint64_t key = random.below(num_keys) << shift;
      const auto number = static_cast<uint32_t>(expected.size());
      const uint32_t should = expected.try_emplace(key, number).first->second;
      ASSERT_EQ(numbers.of(key), should) << "round " << round << ", key " << key;
      ASSERT_EQ(numbers.size(), expected.size());
    }
    numbers.clear();
    ASSERT_EQ(numbers.size(), 0u);
  }
}

TEST(NumberingTest, TheLargestAndTheSmallestKeysAreKeysAsAnyOther) {
  Numbering<uint32_t> numbers;
  EXPECT_EQ(numbers.of(UINT32_MAX), 0u);
  EXPECT_EQ(numbers.of(0), 1u);
  EXPECT_EQ(numbers.of(UINT32_MAX), 0u);
  EXPECT_EQ(numbers.size(), 2u);
}

}  // namespace
}  // namespace eddy
