// Claim: blocks in conflict never overlap, each lies at the bottom or right above one that it is in
// conflict with, an interval problem is laid out at its bound, and the same problem gives the same
// layout.
#include "graph/schedule/memory/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/base/random.h"

namespace eddy {
namespace {

struct Problem {
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> starts;
  std::vector<uint32_t> ends;
  BitMatrix conflicts{0, 0};
  uint64_t bound = 0;  // the heaviest moment

  LayoutProblem view() const { return {sizes, starts, ends, conflicts, bound}; }
};

// Blocks that live from start to end.
Problem random_problem(uint64_t seed) {
  Random random(seed);
  const auto count = static_cast<uint32_t>(random.below(60));
  Problem problem;
  problem.conflicts = BitMatrix(count, count);
  std::vector<uint64_t> load(101, 0);
  for (uint32_t i = 0; i < count; ++i) {
    problem.sizes.push_back(64 * (1 + random.below(random.below(4) == 0 ? 100 : 10)));
    problem.starts.push_back(static_cast<uint32_t>(random.below(80)));
    problem.ends.push_back(problem.starts[i] + static_cast<uint32_t>(random.below(20)));
    for (uint32_t t = problem.starts[i]; t <= problem.ends[i]; ++t) load[t] += problem.sizes[i];
    for (uint32_t j = 0; j < i; ++j) {
      if (problem.starts[i] > problem.ends[j] || problem.starts[j] > problem.ends[i]) continue;
      problem.conflicts.set(i, j);
      problem.conflicts.set(j, i);
    }
  }
  problem.bound = *std::max_element(load.begin(), load.end());
  return problem;
}

TEST(LayoutTest, BlocksInConflictLieApart) {
  uint64_t total = 0;
  uint64_t total_bound = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Problem problem = random_problem(seed);
    const Layout layout = lay_out(problem.view());
    EXPECT_GE(layout.peak_bytes, problem.bound);
    total += layout.peak_bytes;
    total_bound += problem.bound;
    for (uint32_t i = 0; i < problem.sizes.size(); ++i) {
      EXPECT_LE(layout.offsets_bytes[i] + problem.sizes[i], layout.peak_bytes);
      bool is_supported = layout.offsets_bytes[i] == 0;
      for (uint32_t j = 0; j < problem.sizes.size(); ++j) {
        is_supported |= problem.conflicts.test(i, j) &&
                        layout.offsets_bytes[j] + problem.sizes[j] == layout.offsets_bytes[i];
      }
      EXPECT_TRUE(is_supported) << i;
      for (uint32_t j = 0; j < i; ++j) {
        const bool is_apart =
            layout.offsets_bytes[i] + problem.sizes[i] <= layout.offsets_bytes[j] ||
            layout.offsets_bytes[j] + problem.sizes[j] <= layout.offsets_bytes[i];
        EXPECT_TRUE(is_apart || !problem.conflicts.test(i, j)) << i << " and " << j;
      }
    }
    EXPECT_EQ(lay_out(problem.view()).offsets_bytes, layout.offsets_bytes);
  }
  EXPECT_LE(static_cast<double>(total), 1.05 * static_cast<double>(total_bound));
}

TEST(LayoutTest, NothingNeedsNothing) {
  const Problem problem = {};
  EXPECT_EQ(lay_out(problem.view()).peak_bytes, 0u);
}

}  // namespace
}  // namespace eddy
