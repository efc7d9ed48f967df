// Claim: on the virtual device, in every order of streams and strands, sessions give the oracle's
// results, step by step, without a race and without leaving anything behind.
//
// EDDY_CHECK_SEEDS=N runs N seeds, EDDY_CHECK_FIRST=N starts there.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tools/check/hash_ops.h"
#include "tools/check/order_campaign.h"

namespace eddy::check {
namespace {

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class OrderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(add_hash_ops(library_).is_ok()); }

  void expect_no_mismatch(const std::string& policy, const GenerateOptions& generate,
                          uint64_t num_seeds, uint64_t first_seed = 0) {
    auto contestants = order_contestants(policy, counts_);
    ASSERT_TRUE(contestants.is_ok()) << contestants.status().to_string();
    DifferentialOptions options;
    options.first_seed = number("EDDY_CHECK_FIRST", first_seed);
    options.num_seeds = number("EDDY_CHECK_SEEDS", num_seeds);
    options.generate = generate;
    if (options.num_seeds == 1) options.contestants_per_seed = contestants->size();
    const DifferentialReport report = run_differential(library_, *contestants, options);
    for (const Mismatch& mismatch : report.mismatches) {
      ADD_FAILURE() << "EDDY_CHECK_FIRST=" << mismatch.seed << " EDDY_CHECK_SEEDS=1, "
                    << mismatch.contestant << ": " << mismatch.what << "\n"
                    << mismatch.smallest.text;
    }
    EXPECT_EQ(report.num_graphs, options.num_seeds);
  }

  Library library_;
  OrderCounts counts_;
};

TEST_F(OrderTest, EveryPolicyAgreesWithTheOracleOnEveryStep) {
  expect_no_mismatch("", {}, 1000);
  EXPECT_GT(counts_.num_accesses, counts_.num_steps);
}

// The slot of a memory that an append had taken passed around a loop and was written as if it still
// owned that memory.
TEST_F(OrderTest, AnAppendedInputLeavesItsMemoryAlone) {
  expect_no_mismatch("", {.has_optionals = false}, 1, 179585);
}

// Another strand let go of the memory before; only the count of references orders that.
TEST_F(OrderTest, MemoryThatCameBackIsWrittenAgain) {
  for (uint64_t seed : {50211, 51990, 53475}) {
    expect_no_mismatch("", {.has_optionals = false}, 1, seed);
  }
}

// Two runs in flight, with loops that the host drives, too: a failing seed can be reproduced.
TEST_F(OrderTest, ASeedTakesTheSameStepsEachTime) {
  const uint64_t first = number("EDDY_CHECK_FIRST", 0);
  const uint64_t num_seeds = number("EDDY_CHECK_SEEDS", 60);
  std::vector<uint64_t> digests;
  for (int time = 0; time < 2; ++time) {
    OrderCounts counts;
    const auto contestants = order_contestants("", counts);  // of each policy
    ASSERT_TRUE(contestants.is_ok()) << contestants.status().to_string();
    for (uint64_t i = 0; i < num_seeds * contestants->size(); ++i) {
      const Contestant& contestant = (*contestants)[i % contestants->size()];
      Subject subject(library_, make_recipe(first + i / contestants->size()));
      EXPECT_EQ(contestant.difference(subject), "");
      if (time == 0) {
        digests.push_back(counts.digest);
        continue;
      }
      ASSERT_EQ(counts.digest, digests[i]) << "EDDY_CHECK_FIRST=" << first + i / contestants->size()
                                           << " EDDY_CHECK_SEEDS=1, " << contestant.name;
    }
    EXPECT_GT(counts.num_steps, 10 * num_seeds);
  }
}

// A loop of no iteration in a pipelined loop's tail is tested in iterations 0 and 1 of it with no
// test of the loop around it between: not a test made twice.
TEST_F(OrderTest, LoopsInTailsAreTestedOnceInEachIteration) {
  OrderCounts counts;
  const auto contestants = order_contestants("", counts);
  ASSERT_TRUE(contestants.is_ok()) << contestants.status().to_string();
  for (const Contestant& contestant : *contestants) {
    Subject subject(library_, make_recipe(708768, {.may_have_floats = true}));
    EXPECT_EQ(contestant.difference(subject), "") << contestant.name;
  }
}

TEST_F(OrderTest, LargeGraphsDoToo) {
  expect_no_mismatch("", {.min_steps = 40, .max_steps = 100, .has_floats = true}, 60);
}

TEST_F(OrderTest, EveryOrderOfASmallGraphDoes) {
  expect_no_mismatch("exhaustive", exhaustive_graphs(), 150);
  EXPECT_GT(counts_.num_explored, 75u);
}

TEST_F(OrderTest, AnUnknownPolicyIsAnErrorThatNamesThoseThereAre) {
  const auto contestants = order_contestants("sometimes", counts_);
  ASSERT_FALSE(contestants.is_ok());
  EXPECT_EQ(contestants.status().message(),
            "there is no policy 'sometimes'; there are uniform, pct, starve, late, early and "
            "exhaustive");
}

}  // namespace
}  // namespace eddy::check
