// Claim: a Dag is the same for the same set of edges, in rows that are ascending both ways; what
// is no DAG is refused with the edge that makes it none.
#include "graph/analysis/dag.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/graph/analysis/dags.h"

namespace eddy {
namespace {

using testing::dag_of;
using testing::random_permutation;

std::string error_of(uint32_t num_nodes, std::vector<Edge> edges) {
  const Result<Dag> result = build_dag(num_nodes, edges);
  return result.is_ok() ? "ok" : result.status().message();
}

TEST(DagTest, RowsAreAscendingBothWaysAndDuplicatesAreMerged) {
  const Dag dag = dag_of(4, {{0, 3}, {2, 3}, {0, 1}, {0, 3}, {1, 3}, {0, 3}});
  EXPECT_EQ(dag.num_nodes(), 4u);
  EXPECT_EQ(dag.num_edges(), 4u);
  EXPECT_EQ(std::vector<uint32_t>(dag.children(0).begin(), dag.children(0).end()),
            (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(std::vector<uint32_t>(dag.parents(3).begin(), dag.parents(3).end()),
            (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(dag.edges(), (std::vector<Edge>{{0, 1}, {0, 3}, {1, 3}, {2, 3}}));
}

TEST(DagTest, TheOrderOfTheEdgesDoesNotMatter) {
  Random random(1);
  for (int i = 0; i < 50; ++i) {
    const Dag dag = testing::random_dag(random, {.num_nodes = 30, .num_edges = 90});
    std::vector<Edge> shuffled;
    for (uint32_t place : random_permutation(random, dag.num_edges())) {
      shuffled.push_back(dag.edges()[place]);
    }
    EXPECT_EQ(dag_of(30, shuffled), dag);
  }
}

TEST(DagTest, NoNodesAndNoEdgesAreFine) {
  EXPECT_EQ(dag_of(0, {}).num_nodes(), 0u);
  EXPECT_EQ(dag_of(3, {}).num_edges(), 0u);
  EXPECT_EQ(dag_of(0, {}), Dag());
}

TEST(DagTest, ASelfEdgeIsNamed) {
  EXPECT_EQ(error_of(3, {{0, 1}, {2, 2}}), "edge 1 [2, 2]: a node cannot depend on itself");
}

TEST(DagTest, AnIdOutOfRangeIsNamed) {
  EXPECT_EQ(error_of(3, {{0, 3}}), "edge 0 [0, 3]: id 3 is out of range, the graph has 3 nodes");
  EXPECT_EQ(error_of(0, {{0, 0}}), "edge 0 [0, 0]: id 0 is out of range, the graph has 0 nodes");
}

TEST(DagTest, ACycleIsNamedWithoutTheNodesThatLeadToIt) {
  const std::string error = error_of(6, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}, {4, 5}});
  EXPECT_NE(error.find("closes a cycle: "), std::string::npos) << error;
  EXPECT_EQ(error.find('0'), std::string::npos) << error;
  EXPECT_EQ(error.find('5'), std::string::npos) << error;
  EXPECT_EQ(error_of(2, {{0, 1}, {1, 0}}), "edge 0 [0, 1] closes a cycle: 1 -> 0 -> 1");
}

TEST(DagTest, ALongCycleIsNamedInShort) {
  std::vector<Edge> ring;
  for (uint32_t node = 0; node < 100'000; ++node) ring.push_back({node, (node + 1) % 100'000});
  const std::string error = error_of(100'000, ring);
  EXPECT_NE(error.find("more) -> "), std::string::npos) << error;
  EXPECT_LT(error.size(), 250u);
}

TEST(DagTest, RelabellingThereAndBackChangesNothing) {
  Random random(2);
  const Dag dag = testing::random_dag(random, {.num_nodes = 50, .num_edges = 120});
  const std::vector<uint32_t> there = random_permutation(random, 50);
  std::vector<uint32_t> back(50);
  for (uint32_t i = 0; i < 50; ++i) back[there[i]] = i;
  EXPECT_NE(relabel(dag, there), dag);
  EXPECT_EQ(relabel(relabel(dag, there), back), dag);
}

}  // namespace
}  // namespace eddy
