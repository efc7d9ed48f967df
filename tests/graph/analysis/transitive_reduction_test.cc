// Claim: the reduction keeps exactly the edges that no longer path implies, also across blocks of
// 512 sources, with full rows, and beside an order that is given.
#include "graph/analysis/transitive_reduction.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/analysis/reachability.h"
#include "tests/graph/analysis/dags.h"

namespace eddy {
namespace {

using testing::dag_of;
using testing::RandomDag;

// Of a graph whose ids are a topological order, by all that each node reaches.
std::vector<Edge> reduction_of_whole_order(const Dag& dag) {
  const BitMatrix reach = reachability(dag);
  BitMatrix later(dag.num_nodes(), dag.num_nodes());
  for (uint32_t u = 0; u < dag.num_nodes(); ++u) {
    for (uint32_t v = u + 1; v < dag.num_nodes(); ++v) {
      if (reach.test(u, v)) later.set(u, v);
    }
  }
  return transitive_reduction(later).edges();
}

TEST(ReachabilityTest, IsWhatDepthFirstSearchFinds) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 100, .num_edges = 200});
    const testing::Relation model = testing::model_reachability(dag);
    const BitMatrix reach = reachability(dag);
    for (uint32_t u = 0; u < 100; ++u) {
      for (uint32_t v = 0; v < 100; ++v) ASSERT_EQ(reach.test(u, v), model[u][v]);
    }
  }
}

TEST(TransitiveReductionTest, AllGraphsOfUpToFiveNodes) {
  for (uint32_t num_nodes = 0; num_nodes <= 5; ++num_nodes) {
    testing::for_each_dag(num_nodes, [](const Dag& dag) {
      ASSERT_EQ(transitive_reduction(dag).edges(), testing::model_reduction(dag));
      ASSERT_EQ(reduction_of_whole_order(dag), testing::model_reduction(dag));
    });
  }
}

TEST(TransitiveReductionTest, RandomGraphsOfEveryDensity) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomDag options{.num_nodes = 1 + static_cast<uint32_t>(random.below(120))};
    options.num_edges = static_cast<uint32_t>(random.below(options.num_nodes * 6));
    options.window = seed % 3 == 0 ? 1 + static_cast<uint32_t>(random.below(20)) : 0;
    options.shuffle = seed % 2 == 0;
    const Dag dag = testing::random_dag(random, options);
    ASSERT_EQ(transitive_reduction(dag).edges(), testing::model_reduction(dag));
    if (options.shuffle) continue;
    ASSERT_EQ(reduction_of_whole_order(dag), testing::model_reduction(dag));
  }
}

TEST(TransitiveReductionTest, GraphsWithSeveralBlocksOfSources) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag = testing::random_dag(random, {.num_nodes = 1600,
                                                 .num_edges = 9000,
                                                 .window = seed % 2 == 0 ? 40u : 0u,
                                                 .shuffle = seed >= 2});
    ASSERT_EQ(transitive_reduction(dag).edges(), testing::model_reduction(dag));
  }
}

TEST(TransitiveReductionTest, ACompleteOrderBecomesAChain) {
  std::vector<Edge> edges;
  for (uint32_t from = 0; from < 1100; ++from) {
    for (uint32_t to = from + 1; to < 1100; ++to) edges.push_back({from, to});
  }
  const Dag reduced = transitive_reduction(dag_of(1100, edges));
  EXPECT_EQ(reduced.num_edges(), 1099u);
  for (uint32_t node = 0; node + 1 < 1100; ++node) EXPECT_EQ(reduced.children(node)[0], node + 1);
}

// Edges of `dag` to add to `given` until their closures agree, by the definition.
std::vector<Edge> model_beyond(const Dag& dag, const std::vector<Edge>& given) {
  std::vector<Edge> all = dag.edges();
  all.insert(all.end(), given.begin(), given.end());
  std::vector<Edge> kept = testing::model_reduction(dag_of(dag.num_nodes(), all));
  std::erase_if(kept, [&](const Edge& edge) {
    return std::find(given.begin(), given.end(), edge) != given.end();
  });
  return kept;
}

TEST(EdgesBeyondTest, AreTheReductionOfBothWithoutWhatIsGiven) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Dag dag =
        testing::random_dag(random, {.num_nodes = 40, .num_edges = 70, .shuffle = false});
    std::vector<Edge> given;
    for (uint64_t i = random.below(40); i > 0; --i) {
      const uint32_t from = static_cast<uint32_t>(random.below(39));
      given.push_back({from, from + 1 + static_cast<uint32_t>(random.below(39 - from))});
    }
    ASSERT_EQ(edges_beyond(dag, given), model_beyond(dag, given));
  }
}

}  // namespace
}  // namespace eddy
