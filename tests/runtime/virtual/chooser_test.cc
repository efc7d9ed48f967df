// Claim: choices repeat with their seed, each policy keeps its word, and the explorer takes every
// order exactly once.
#include "runtime/virtual/chooser.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

namespace eddy {
namespace {

std::vector<size_t> choices_of(const ChooserOptions& options, size_t num_lanes) {
  auto chooser = make_chooser(options);
  std::vector<LaneNumber> lanes(num_lanes);
  std::iota(lanes.begin(), lanes.end(), 1u);
  std::vector<size_t> choices;
  for (int i = 0; i < 200; ++i) {
    choices.push_back(chooser->choose(lanes));
    EXPECT_LT(choices.back(), num_lanes);
  }
  return choices;
}

TEST(Chooser, EveryPolicyRepeatsItsChoicesForOneSeed) {
  for (const char* name : {"uniform", "pct", "starve", "late", "early"}) {
    const auto policy = find_schedule_policy(name);
    ASSERT_TRUE(policy.has_value()) << name;
    EXPECT_EQ(schedule_policy_name(*policy), name);
    const ChooserOptions options{.policy = *policy, .seed = 3};
    EXPECT_EQ(choices_of(options, 5), choices_of(options, 5)) << name;
  }
  EXPECT_FALSE(find_schedule_policy("sometimes").has_value());
}

TEST(Chooser, UniformChoosesEachLaneAboutEquallyOften) {
  std::vector<int> counts(4, 0);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (size_t i : choices_of({.policy = SchedulePolicy::kUniform, .seed = seed}, 4)) ++counts[i];
  }
  for (int count : counts) EXPECT_NEAR(count, 500, 120);
}

TEST(Chooser, PctKeepsALeaderExceptAtItsChangePoints) {
  constexpr uint64_t kNumSeeds = 20;
  // Changes of the leader in choices [from, to), in all seeds; in each at most `depth` a horizon.
  const auto count_changes = [](uint64_t expected, uint32_t depth, size_t from, size_t to) {
    size_t sum = 0;
    for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
      const auto choices = choices_of({.policy = SchedulePolicy::kPct,
                                       .seed = seed,
                                       .depth = depth,
                                       .expected_choices = expected},
                                      6);
      size_t num_changes = 0;
      for (size_t i = from + 1; i < to; ++i) num_changes += choices[i] != choices[i - 1];
      EXPECT_LE(num_changes, depth) << "seed " << seed;
      sum += num_changes;
    }
    return sum;
  };
  EXPECT_EQ(count_changes(200, 0, 0, 200), 0u);
  // Two that fall together, or on the first choice, are seen as fewer.
  EXPECT_GE(count_changes(200, 2, 0, 200), 3 * kNumSeeds / 2);
  EXPECT_GE(count_changes(25, 2, 100, 200), 3 * kNumSeeds / 2);  // beyond what was expected
}

TEST(Chooser, StarveNeverChoosesOneLaneWhileOthersCanGoOn) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto choices = choices_of({.policy = SchedulePolicy::kStarve, .seed = seed}, 4);
    EXPECT_EQ(std::set<size_t>(choices.begin(), choices.end()).size(), 3u) << "seed " << seed;
  }
}

TEST(Chooser, LateTakesTheOldestLaneAndEarlyTheYoungest) {
  EXPECT_EQ(choices_of({.policy = SchedulePolicy::kLate}, 4), std::vector<size_t>(200, 0));
  EXPECT_EQ(choices_of({.policy = SchedulePolicy::kEarly}, 4), std::vector<size_t>(200, 3));
}

// Two threads of `a` and `b` steps: all interleavings are (a + b)! / (a! b!).
TEST(Explorer, TakesEveryInterleavingOfTwoThreadsOnce) {
  Explorer explorer;
  std::set<std::string> orders;
  size_t num_runs = 0;
  while (const auto* given = explorer.next_or_null()) {
    ReplayChooser chooser(*given);
    int left[2] = {4, 5};
    std::string order;
    while (left[0] + left[1] > 0) {
      std::vector<LaneNumber> ready;
      for (LaneNumber lane : {0u, 1u}) {
        if (left[lane] > 0) ready.push_back(lane);
      }
      const LaneNumber lane = ready.size() == 1 ? ready[0] : ready[chooser.choose(ready)];
      --left[lane];
      order += lane == 0 ? 'a' : 'b';
    }
    orders.insert(order);
    ++num_runs;
    explorer.made(chooser.made());
  }
  EXPECT_EQ(num_runs, 126u);
  EXPECT_EQ(orders.size(), 126u);
}

}  // namespace
}  // namespace eddy
