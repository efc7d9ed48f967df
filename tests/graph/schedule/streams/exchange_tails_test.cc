// Claim: with exchanged tails, matching needs the fewest waits between nodes and at a region's
// entry and exit together, as trying all assignments shows, on as many streams as before.
#include "graph/schedule/streams/exchange_tails.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "graph/schedule/streams/command_list.h"
#include "tests/graph/analysis/dags.h"
#include "tests/graph/schedule/streams/all_assignments.h"
#include "tests/graph/schedule/streams/plans.h"

namespace eddy {
namespace {

using testing::AllAssignments;
using testing::plan;
using testing::PlannedDag;
using testing::RandomDag;

// The waits with the best of the streams as the region's first.
size_t waits_with_frame(const Dag& dag, const PlannedDag& planned) {
  std::vector<uint32_t> of_stream(planned.streams.num_streams, 0);
  uint32_t all = 0;
  for (uint32_t node = 0; node < dag.num_nodes(); ++node) {
    const uint32_t waits =
        (dag.parents(node).empty() ? 1 : 0) + (dag.children(node).empty() ? 1 : 0);
    of_stream[planned.streams.stream_of_node[node]] += waits;
    all += waits;
  }
  return planned.syncs.waits.size() + all - *std::ranges::max_element(of_stream);
}

struct Tally {
  uint32_t num_exchanged = 0;
  uint32_t num_above = 0;
};

void check(const Dag& dag, Tally& tally) {
  PlannedDag planned = plan(dag, {.policy = AssignPolicy::kMatching});
  const size_t num_waits = planned.syncs.waits.size();
  const size_t before = waits_with_frame(dag, planned);
  const bool is_exchanged = exchange_tails(dag, planned.order, 0, planned.streams);
  planned.syncs = plan_syncs(dag, planned.streams, planned.order);
  ASSERT_EQ(planned.syncs.waits.size(), num_waits);
  ASSERT_EQ(std::ranges::max(planned.streams.stream_of_node) + 1, planned.streams.num_streams);
  const size_t after = waits_with_frame(dag, planned);
  ASSERT_EQ(after, before - (is_exchanged ? 1 : 0));
  planned.commands = command_list(planned.order, planned.streams, planned.syncs);
  ASSERT_TRUE(testing::prove(dag, planned.commands).is_safe());
  const size_t fewest = AllAssignments(dag).fewest_waits_with_frame();
  ASSERT_GE(after, fewest);
  ASSERT_LE(after, fewest + 1);
  tally.num_exchanged += is_exchanged ? 1 : 0;
  tally.num_above += after > fewest ? 1 : 0;
}

TEST(ExchangeTailsTest, AllGraphsOfUpToSixNodesHaveTheFewestWaitsWithTheFrame) {
  Tally tally;
  for (uint32_t num_nodes = 1; num_nodes <= 6; ++num_nodes) {
    testing::for_each_dag(num_nodes,
                          [&](const Dag& dag) { ASSERT_NO_FATAL_FAILURE(check(dag, tally)); });
  }
  std::cout << tally.num_exchanged << " exchanges\n";
  EXPECT_GT(tally.num_exchanged, 0u);
  EXPECT_EQ(tally.num_above, 0u);
}

TEST(ExchangeTailsTest, RandomGraphsOfNineNodesAreAtMostOneWaitAbove) {
  Tally tally;
  constexpr uint64_t kNumSeeds = 3000;
  for (uint64_t seed = 0; seed < kNumSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomDag shape{.num_nodes = 9};
    shape.num_edges = 6 + static_cast<uint32_t>(random.below(14));
    ASSERT_NO_FATAL_FAILURE(check(testing::random_dag(random, shape), tally));
  }
  std::cout << "seeds 0 to " << kNumSeeds - 1 << ": " << tally.num_exchanged << " exchanges, "
            << tally.num_above << " graphs one wait above the fewest\n";
  EXPECT_GT(tally.num_exchanged, 0u);
  EXPECT_LE(tally.num_above, kNumSeeds / 50);
}

}  // namespace
}  // namespace eddy
