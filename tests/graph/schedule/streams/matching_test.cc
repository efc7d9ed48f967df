// Claim: assignment by matching has the fewest waits of all assignments with maximum logical
// concurrency and, in exact mode, the fewest streams among those; Nimble's theorem 3 holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "graph/analysis/topological_order.h"
#include "graph/analysis/transitive_reduction.h"
#include "graph/schedule/streams/matching_assignment.h"
#include "tests/graph/analysis/dags.h"
#include "tests/graph/schedule/streams/all_assignments.h"
#include "tests/graph/schedule/streams/nasnet.h"
#include "tests/graph/schedule/streams/plans.h"

namespace eddy {
namespace {

using testing::AllAssignments;
using testing::plan;
using testing::PlannedDag;
using testing::prove;
using testing::RandomDag;

// The largest set of pairwise unrelated nodes, by trying all sets.
uint32_t model_width(const Dag& dag) {
  const testing::Relation reach = testing::model_reachability(dag);
  uint32_t width = 0;
  for (uint32_t set = 0; set < 1u << dag.num_nodes(); ++set) {
    bool is_antichain = true;
    uint32_t size = 0;
    for (uint32_t u = 0; u < dag.num_nodes() && is_antichain; ++u) {
      if (!(set >> u & 1)) continue;
      ++size;
      for (uint32_t v = 0; v < dag.num_nodes(); ++v) {
        if ((set >> v & 1) && reach[u][v]) is_antichain = false;
      }
    }
    if (is_antichain) width = std::max(width, size);
  }
  return width;
}

void expect_optimal(const Dag& dag) {
  const PlannedDag planned = plan(dag, {.policy = AssignPolicy::kMatching});
  const AllAssignments best(dag);
  ASSERT_EQ(planned.syncs.waits.size(), best.fewest_waits());
  ASSERT_EQ(planned.streams.num_streams, best.fewest_streams_then());
  ASSERT_TRUE(prove(dag, planned.commands).is_safe());
}

StreamOptions joined() { return {.policy = AssignPolicy::kMatching, .exact_nodes = 0}; }

TEST(MatchingTest, AllGraphsOfUpToSixNodesAreOptimal) {
  for (uint32_t num_nodes = 1; num_nodes <= 6; ++num_nodes) {
    testing::for_each_dag(num_nodes,
                          [](const Dag& dag) { ASSERT_NO_FATAL_FAILURE(expect_optimal(dag)); });
  }
}

TEST(MatchingTest, RandomGraphsOfNineNodesAreOptimal) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomDag shape{.num_nodes = 9};
    shape.num_edges = 6 + static_cast<uint32_t>(random.below(14));
    ASSERT_NO_FATAL_FAILURE(expect_optimal(testing::random_dag(random, shape)));
  }
}

TEST(MatchingTest, WhereTheFewestWaitsAndTheFewestStreamsConflictWaitsWin) {
  const Dag dag = testing::dag_of(
      10, {{0, 4}, {0, 6}, {1, 8}, {1, 9}, {2, 1}, {3, 0}, {3, 9}, {5, 1}, {7, 0}, {7, 1}});
  ASSERT_NO_FATAL_FAILURE(expect_optimal(dag));
  const PlannedDag planned = plan(dag, {.policy = AssignPolicy::kMatching});
  EXPECT_EQ(planned.syncs.waits.size(), 5u);
  EXPECT_EQ(planned.streams.num_streams, 5u);
  EXPECT_EQ(model_width(dag), 4u);
  // Four streams suffice for assignments with more waits.
  const PlannedDag narrow = plan(dag, {.policy = AssignPolicy::kRank});
  EXPECT_EQ(narrow.streams.num_streams, 4u);
  EXPECT_GT(narrow.syncs.waits.size(), 5u);
}

TEST(MatchingTest, JoinedChainsKeepTheFewestWaitsAndStayAtOrAboveTheWidth) {
  testing::for_each_dag(5, [](const Dag& dag) {
    const PlannedDag planned = plan(dag, joined());
    const AllAssignments best(dag);
    ASSERT_EQ(planned.syncs.waits.size(), best.fewest_waits());
    ASSERT_GE(planned.streams.num_streams, best.fewest_streams_then());
    ASSERT_GE(planned.streams.num_streams, model_width(dag));
    ASSERT_TRUE(prove(dag, planned.commands).is_safe());
  });
}

TEST(MatchingTest, WaitsAreTheReducedEdgesWithoutTheMatchedOnes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 150, .num_edges = 300, .window = 30});
    const Dag reduced = transitive_reduction(dag);
    for (uint32_t exact_nodes : {0u, 2000u}) {
      const StreamOptions options{.policy = AssignPolicy::kMatching, .exact_nodes = exact_nodes};
      const PlannedDag planned = plan(dag, options);
      const uint32_t matched = matching_size(reduced, options);
      ASSERT_EQ(planned.syncs.waits.size(), reduced.num_edges() - matched);
      ASSERT_TRUE(prove(dag, planned.commands).is_safe());
    }
    // The joined chains start from as many as the matching leaves, and only get fewer.
    ASSERT_LE(plan(dag, joined()).streams.num_streams, 150 - matching_size(reduced, joined()));
  }
}

TEST(MatchingTest, NewNamesKeepTheWaitsAndExactStreams) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 80, .num_edges = 150});
    const Dag renamed = relabel(dag, testing::random_permutation(random, 80));
    const StreamOptions options{.policy = AssignPolicy::kMatching};
    EXPECT_EQ(plan(dag, options).syncs.waits.size(), plan(renamed, options).syncs.waits.size());
    EXPECT_EQ(plan(dag, options).streams.num_streams, plan(renamed, options).streams.num_streams);
    EXPECT_EQ(plan(dag, joined()).syncs.waits.size(), plan(renamed, joined()).syncs.waits.size());
  }
}

TEST(MatchingTest, SaysHowItSavedStreams) {
  Random random(1);
  const Dag small = transitive_reduction(testing::random_dag(random, {}));
  const std::vector<uint32_t> order = topological_order(small);
  EXPECT_EQ(assign_by_matching(small, order, {}).streams.fewest, FewestStreams::kExact);
  EXPECT_EQ(assign_by_matching(small, order, {.exact_nodes = 19}).streams.fewest,
            FewestStreams::kJoined);
  // Far more ends and starts reach each other than there are edges.
  std::vector<Edge> edges;
  for (uint32_t node = 0; node < 2000; ++node) {
    edges.push_back({node, 4000});
    edges.push_back({4000, node + 2000});
  }
  const Dag hourglass = testing::dag_of(4001, edges);
  const std::vector<uint32_t> rank_order = plan(hourglass).order;
  const MatchingAssignment greedy = assign_by_matching(hourglass, rank_order, {});
  EXPECT_EQ(greedy.streams.fewest, FewestStreams::kGreedily);
  EXPECT_EQ(greedy.streams.num_streams, 2000u);
  EXPECT_EQ(greedy.matching_size, 2u);
}

// The first seed of those from 0 on where they differ.
TEST(MatchingTest, JoiningChainsTakesAStreamMoreThanNeededOf130NodesOfSeed12) {
  Random random(12);
  const uint32_t num_nodes = 100 + static_cast<uint32_t>(random.below(100));
  const uint32_t num_edges = num_nodes + static_cast<uint32_t>(random.below(num_nodes));
  ASSERT_EQ(num_nodes, 130u);
  const Dag dag = testing::random_dag(random, {.num_nodes = num_nodes, .num_edges = num_edges});
  const PlannedDag exact = plan(dag, {.policy = AssignPolicy::kMatching});
  const PlannedDag chained = plan(dag, joined());
  EXPECT_EQ(exact.streams.num_streams, 51u);
  EXPECT_EQ(chained.streams.num_streams, 52u);
  EXPECT_EQ(exact.syncs.waits.size(), chained.syncs.waits.size());
  EXPECT_TRUE(prove(dag, exact.commands).is_safe());
  EXPECT_TRUE(prove(dag, chained.commands).is_safe());
}

TEST(MatchingTest, NasnetALargeHas334WaitsOn16Streams) {
  const Dag dag = testing::nasnet_a_large();
  ASSERT_EQ(dag.num_nodes(), 1007u);
  ASSERT_EQ(dag.num_edges(), 1222u);
  for (uint32_t seed = 0; seed < 3; ++seed) {
    Random random(seed);
    const Dag renamed = relabel(dag, testing::random_permutation(random, 1007));
    const PlannedDag planned = plan(renamed, {.policy = AssignPolicy::kMatching});
    EXPECT_EQ(planned.syncs.waits.size(), 334u);
    EXPECT_EQ(planned.streams.num_streams, 16u);
    EXPECT_TRUE(prove(renamed, planned.commands).is_safe());
  }
}

TEST(MatchingTest, PairsOnlyNodesOfOneDevice) {
  // A chain that alternates between two devices matches nothing and needs every wait.
  const Dag dag = testing::dag_of(4, {{0, 1}, {1, 2}, {2, 3}});
  const std::vector<uint32_t> devices = {0, 1, 0, 1};
  const PlannedDag planned = plan(dag, {.policy = AssignPolicy::kMatching, .devices = devices});
  EXPECT_EQ(testing::nodes_of_streams(planned.streams),
            (std::vector<std::vector<uint32_t>>{{0, 2}, {1, 3}}));
  EXPECT_EQ(planned.syncs.waits.size(), 3u);
}

}  // namespace
}  // namespace eddy
