// Claim: the result is an antichain, has the reported weight, and none is heavier.
#include "graph/analysis/antichain.h"

#include <gtest/gtest.h>

#include <bit>

#include "graph/analysis/reachability.h"
#include "graph/base/random.h"

namespace eddy {
namespace {

Dag random_dag(Random& random, uint32_t max_nodes) {
  const uint32_t n = 1 + static_cast<uint32_t>(random.below(max_nodes));
  const uint64_t one_in = 1 + random.below(8);
  std::vector<Edge> edges;
  for (uint32_t u = 0; u < n; ++u) {
    for (uint32_t v = u + 1; v < n; ++v) {
      if (random.below(one_in) == 0) edges.push_back({u, v});
    }
  }
  return Dag::from_acyclic_edges(n, edges);
}

// Every subset.
uint64_t model_weight(const BitMatrix& reaches, const std::vector<uint64_t>& weights) {
  uint64_t best = 0;
  const uint32_t n = reaches.rows();
  for (uint32_t set = 0; set < (1u << n); ++set) {
    uint64_t weight = 0;
    bool is_antichain = true;
    for (uint32_t u = 0; u < n && is_antichain; ++u) {
      if (!(set >> u & 1)) continue;
      weight += weights[u];
      for (uint32_t v = u + 1; v < n; ++v) is_antichain &= !(set >> v & 1) || !reaches.test(u, v);
    }
    if (is_antichain) best = std::max(best, weight);
  }
  return best;
}

TEST(AntichainTest, NoneIsHeavier) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Dag dag = random_dag(random, 12);
    std::vector<uint64_t> weights(dag.num_nodes());
    for (uint64_t& weight : weights) weight = random.below(100);
    const BitMatrix reaches = reachability(dag);
    const Antichain found = heaviest_antichain(dag, weights);
    EXPECT_EQ(found.weight, model_weight(reaches, weights));
    uint64_t weight = 0;
    for (const uint32_t u : found.nodes) {
      weight += weights[u];
      for (const uint32_t v : found.nodes) EXPECT_TRUE(u == v || !reaches.test(u, v)) << u << v;
    }
    EXPECT_EQ(weight, found.weight);
  }
}

TEST(AntichainTest, OfFewNodesTheWeightIsTheSame) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Dag dag = random_dag(random, kFewNodes);
    std::vector<uint64_t> weights(dag.num_nodes());
    for (uint64_t& weight : weights) weight = random.below(100);
    const BitMatrix reaches = reachability(dag);
    std::vector<uint32_t> comparable(dag.num_nodes(), 0);
    for (uint32_t u = 0; u < dag.num_nodes(); ++u) {
      for (uint32_t v = 0; v < dag.num_nodes(); ++v) {
        if (u != v && (reaches.test(u, v) || reaches.test(v, u))) comparable[u] |= 1u << v;
      }
    }
    EXPECT_EQ(heaviest_weight_of_few(comparable, weights), heaviest_antichain(dag, weights).weight);
  }
  EXPECT_EQ(heaviest_weight_of_few({}, {}), 0u);
}

TEST(AntichainTest, OfIntervalsTheWeightIsTheSame) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<WeightedInterval> intervals(1 + random.below(30));
    std::vector<uint64_t> weights;
    std::vector<Edge> edges;
    for (WeightedInterval& each : intervals) {
      each.first = static_cast<uint32_t>(random.below(20));
      each.last =
          random.below(5) == 0 ? UINT32_MAX : each.first + static_cast<uint32_t>(random.below(6));
      each.weight = random.below(100);
      weights.push_back(each.weight);
    }
    for (uint32_t a = 0; a < intervals.size(); ++a) {
      for (uint32_t b = 0; b < intervals.size(); ++b) {
        if (intervals[a].last < intervals[b].first) edges.push_back({a, b});
      }
    }
    const Dag dag = Dag::from_acyclic_edges(static_cast<uint32_t>(intervals.size()), edges);
    EXPECT_EQ(heaviest_weight_of_intervals(intervals), heaviest_antichain(dag, weights).weight);
  }
  EXPECT_EQ(heaviest_weight_of_intervals({}), 0u);
}

TEST(AntichainTest, AChainHoldsItsHeaviestNode) {
  constexpr uint32_t kLength = 5000;
  std::vector<Edge> edges;
  std::vector<uint64_t> weights(kLength, 1);
  weights[1234] = uint64_t{1} << 40;
  for (uint32_t i = 0; i + 1 < kLength; ++i) edges.push_back({i, i + 1});
  const Antichain found = heaviest_antichain(Dag::from_acyclic_edges(kLength, edges), weights);
  EXPECT_EQ(found.weight, uint64_t{1} << 40);
  EXPECT_EQ(found.nodes, std::vector<uint32_t>{1234});
}

TEST(AntichainTest, NothingWeighsNothing) {
  EXPECT_EQ(heaviest_antichain(Dag::from_acyclic_edges(0, {}), {}).weight, 0u);
}

}  // namespace
}  // namespace eddy
