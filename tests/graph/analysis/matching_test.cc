// Claim: the matching is valid and maximum, a start stays covered, and the vertex cover proves
// the size (König).
#include "graph/analysis/matching.h"

#include <gtest/gtest.h>

#include <functional>

#include "graph/base/random.h"

namespace eddy {
namespace {

constexpr uint32_t kUnmatched = Matching::kUnmatched;

Bipartite random_bipartite(Random& random) {
  Bipartite graph;
  const uint32_t num_left = static_cast<uint32_t>(random.below(30));
  graph.num_right = static_cast<uint32_t>(random.below(30));
  const uint64_t one_in = 1 + random.below(12);
  for (uint32_t left = 0; left < num_left; ++left) {
    for (uint32_t right = 0; right < graph.num_right; ++right) {
      if (random.below(one_in) == 0) graph.targets.push_back(right);
    }
    graph.end_row();
  }
  return graph;
}

// Augmenting paths one by one (Kuhn).
uint32_t model_size(const Bipartite& graph) {
  std::vector<uint32_t> left_of_right(graph.num_right, kUnmatched);
  std::vector<bool> tried;
  std::function<bool(uint32_t)> augment = [&](uint32_t left) {
    for (uint32_t right : graph.row(left)) {
      if (tried[right]) continue;
      tried[right] = true;
      if (left_of_right[right] != kUnmatched && !augment(left_of_right[right])) continue;
      left_of_right[right] = left;
      return true;
    }
    return false;
  };
  uint32_t size = 0;
  for (uint32_t left = 0; left < graph.num_left(); ++left) {
    tried.assign(graph.num_right, false);
    if (augment(left)) ++size;
  }
  return size;
}

void expect_valid(const Bipartite& graph, const Matching& matching) {
  uint32_t pairs = 0;
  for (uint32_t left = 0; left < graph.num_left(); ++left) {
    const uint32_t right = matching.right_of_left[left];
    if (right == kUnmatched) continue;
    ++pairs;
    EXPECT_EQ(matching.left_of_right[right], left);
    bool is_edge = false;
    for (uint32_t target : graph.row(left)) is_edge |= target == right;
    EXPECT_TRUE(is_edge);
  }
  EXPECT_EQ(pairs, matching.size);
}

TEST(MaximumMatchingTest, HasTheSizeThatAugmentingOneByOneFinds) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Bipartite graph = random_bipartite(random);
    const Matching matching = maximum_matching(graph);
    expect_valid(graph, matching);
    ASSERT_EQ(matching.size, model_size(graph));
  }
}

TEST(MaximumMatchingTest, WhatTheStartMatchesStaysMatched) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Bipartite graph = random_bipartite(random);
    Matching start;
    start.right_of_left.assign(graph.num_left(), kUnmatched);
    start.left_of_right.assign(graph.num_right, kUnmatched);
    for (uint32_t left = 0; left < graph.num_left(); left += 2) {
      for (uint32_t right : graph.row(left)) {
        if (start.left_of_right[right] != kUnmatched) continue;
        start.right_of_left[left] = right;
        start.left_of_right[right] = left;
        ++start.size;
        break;
      }
    }
    const Matching matching = maximum_matching(graph, start);
    expect_valid(graph, matching);
    ASSERT_EQ(matching.size, model_size(graph));
    for (uint32_t left = 0; left < graph.num_left(); ++left) {
      if (start.right_of_left[left] != kUnmatched) {
        EXPECT_NE(matching.right_of_left[left], kUnmatched);
      }
    }
    for (uint32_t right = 0; right < graph.num_right; ++right) {
      if (start.left_of_right[right] != kUnmatched) {
        EXPECT_NE(matching.left_of_right[right], kUnmatched);
      }
    }
  }
}

TEST(MinimumVertexCoverTest, CoversEveryEdgeWithAsManyNodesAsPairs) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Bipartite graph = random_bipartite(random);
    const Matching matching = maximum_matching(graph);
    const VertexCover cover = minimum_vertex_cover(graph, matching);
    uint32_t size = 0;
    for (uint32_t left = 0; left < graph.num_left(); ++left) {
      size += cover.left[left];
      EXPECT_FALSE(cover.left[left] && matching.right_of_left[left] == kUnmatched);
      for (uint32_t right : graph.row(left)) EXPECT_TRUE(cover.left[left] || cover.right[right]);
    }
    for (uint32_t right = 0; right < graph.num_right; ++right) {
      size += cover.right[right];
      EXPECT_FALSE(cover.right[right] && matching.left_of_right[right] == kUnmatched);
    }
    ASSERT_EQ(size, matching.size);
  }
}

TEST(MaximumMatchingTest, ALongAlternatingPathDoesNotRecurse) {
  // Left i with right i and i + 1; the greedy start takes i, the last left wants all to shift.
  constexpr uint32_t kNodes = 200'000;
  Bipartite graph;
  graph.num_right = kNodes + 1;
  for (uint32_t left = 0; left < kNodes; ++left) {
    graph.targets.push_back(left);
    graph.targets.push_back(left + 1);
    graph.end_row();
  }
  graph.targets.push_back(0);
  graph.end_row();
  EXPECT_EQ(maximum_matching(graph).size, kNodes + 1);
}

}  // namespace
}  // namespace eddy
