// Claim: both topological orders are topological on any DAG, and ranks and depths are the longest
// chains by their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "graph/analysis/rank.h"
#include "graph/analysis/short_edge_order.h"
#include "graph/analysis/topological_order.h"
#include "tests/graph/analysis/dags.h"

namespace eddy {
namespace {

using testing::dag_of;

TEST(TopologicalOrderTest, EveryParentComesFirstInEitherOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(
        random, {.num_nodes = 40, .num_edges = 80, .window = 7, .shuffle = seed % 2 == 0});
    EXPECT_TRUE(is_topological(dag, topological_order(dag)));
    EXPECT_TRUE(is_topological(dag, short_edge_order(dag)));
  }
}

TEST(TopologicalOrderTest, IdsThatAreInOrderStay) {
  const Dag dag = dag_of(4, {{0, 3}, {1, 2}});
  EXPECT_EQ(topological_order(dag), (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(TopologicalOrderTest, AnOrderWithANodeMissingOrTooEarlyIsNoticed) {
  const Dag dag = dag_of(3, {{0, 1}, {1, 2}});
  EXPECT_TRUE(is_topological(dag, std::vector<uint32_t>{0, 1, 2}));
  EXPECT_FALSE(is_topological(dag, std::vector<uint32_t>{1, 0, 2}));
  EXPECT_FALSE(is_topological(dag, std::vector<uint32_t>{0, 1}));
  EXPECT_FALSE(is_topological(dag, std::vector<uint32_t>{0, 1, 1}));
  EXPECT_FALSE(is_topological(dag, std::vector<uint32_t>{0, 1, 3}));
}

TEST(ShortEdgeOrderTest, AnEarlySinkAndALateSourceStayNearTheirNeighbours) {
  // A chain 0 -> ... -> 99, a sink 100 behind node 0, a source 101 before node 99.
  std::vector<Edge> edges = {{0, 100}, {101, 99}};
  for (uint32_t node = 0; node < 99; ++node) edges.push_back({node, node + 1});
  const std::vector<uint32_t> position = position_of(short_edge_order(dag_of(102, edges)));
  EXPECT_LE(position[100] - position[0], 2u);
  EXPECT_LE(position[99] - position[101], 2u);
}

// The definition, by recursion over all paths.
double model_rank(const Dag& dag, uint32_t node, std::span<const double> costs) {
  double longest = 0;
  for (uint32_t child : dag.children(node)) {
    longest = std::max(longest, costs[child] + model_rank(dag, child, costs));
  }
  return longest;
}

TEST(RankTest, IsTheLongestChainThatFollows) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 15, .num_edges = 30});
    const std::vector<uint32_t> order = topological_order(dag);
    const std::vector<double> units(15, 1.0);
    std::vector<double> costs;
    // Small integers add up without rounding, and some are free.
    for (int i = 0; i < 15; ++i) costs.push_back(static_cast<double>(random.below(4)));
    for (uint32_t node = 0; node < 15; ++node) {
      EXPECT_EQ(unit_ranks(dag, order)[node], model_rank(dag, node, units));
      EXPECT_EQ(cost_ranks(dag, order, costs)[node], model_rank(dag, node, costs));
    }
  }
}

TEST(RankTest, ASinkHasRank0AndASourceHasDepth0) {
  const Dag dag = dag_of(4, {{0, 1}, {1, 3}, {2, 3}});
  const std::vector<uint32_t> order = topological_order(dag);
  EXPECT_EQ(unit_ranks(dag, order), (std::vector<uint32_t>{2, 1, 1, 0}));
  EXPECT_EQ(unit_depths(dag, order), (std::vector<uint32_t>{0, 1, 0, 2}));
  const std::vector<double> costs = {8, 4, 2, 1};
  EXPECT_EQ(cost_ranks(dag, order, costs), (std::vector<double>{5, 1, 1, 0}));
  EXPECT_EQ(cost_depths(dag, order, costs), (std::vector<double>{0, 8, 0, 12}));
}

TEST(RankTest, AChainOfAMillionNodesDoesNotRecurse) {
  std::vector<Edge> edges;
  for (uint32_t node = 0; node + 1 < 1'000'000; ++node) edges.push_back({node + 1, node});
  const Dag dag = dag_of(1'000'000, edges);
  EXPECT_EQ(unit_ranks(dag, topological_order(dag))[999'999], 999'999u);
}

}  // namespace
}  // namespace eddy
