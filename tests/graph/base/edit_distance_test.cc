// Claim: the distance of two texts is the least number of letters put in, taken out or exchanged.
#include "graph/base/edit_distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "graph/base/random.h"

namespace eddy {
namespace {

// All ways, one letter after the other.
size_t tried(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string_view x = a.substr(1), y = b.substr(1);
  const size_t changed = tried(x, y) + (a[0] == b[0] ? 0 : 1);
  return std::min({changed, tried(x, b) + 1, tried(a, y) + 1});
}

TEST(EditDistanceTest, IsTheLeastOfAllWays) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const auto text = [&random] {
      std::string made;
      for (uint64_t i = random.below(6); i > 0; --i) {
        made += static_cast<char>('a' + static_cast<char>(random.below(3)));
      }
      return made;
    };
    const std::string a = text(), b = text();
    EXPECT_EQ(edit_distance(a, b), tried(a, b)) << "seed " << seed << ": " << a << ", " << b;
  }
  EXPECT_EQ(edit_distance("memory-limit", "memory_limit"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
}

}  // namespace
}  // namespace eddy
