// Antichain: the heaviest set of pairwise unordered nodes.
//
// For storages ordered by lifetime it is what must be held at once, whatever the layout: no plan
// can use less memory. For unit weights it is the width of the graph.
//
// Idea (Dilworth, weighted): paths that cover node v weight[v] times need at least as many starts
// as the heaviest antichain weighs, and that many are enough. Paths are joined, an end of one to
// the start of another that it reaches, by a maximum flow (Dinic); what can't be joined is the
// answer. Ends travel on along the edges, so the transitive closure is never built.
//
// Contract: one weight >= 0 for each node; the sum fits into 63 bits.
// Cost: that of one maximum flow on 2n nodes and e + 3n edges: milliseconds for some hundreds of
// nodes, about a second for some thousands of edges-rich ones. Reduce the graph first.
// Source: Dilworth 1950; Ford and Fulkerson, "Flows in Networks", section II.9.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/analysis/dag.h"

namespace eddy {

struct Antichain {
  uint64_t weight = 0;
  std::vector<uint32_t> nodes;  // ascending; those of weight 0 are left out
};

Antichain heaviest_antichain(const Dag& dag, std::span<const uint64_t> weights);

// The weight of the heaviest one, of few nodes, by trying every set. comparable[v]: the nodes that
// are ordered before or after v, as bits; a symmetric relation. Cost: O(2^n).
constexpr size_t kFewNodes = 6;
uint64_t heaviest_weight_of_few(std::span<const uint32_t> comparable,
                                std::span<const uint64_t> weights);

// The weight of the heaviest one, of intervals of places, one before another where it ends in front
// of the other's first place: then those that are pairwise unordered have a place in common. Cost:
// O(n log n).
struct WeightedInterval {
  uint32_t first = 0;
  uint32_t last = 0;  // >= first
  uint64_t weight = 0;
};
uint64_t heaviest_weight_of_intervals(std::span<const WeightedInterval> intervals);

}  // namespace eddy
