// RegionTree: how the regions of a graph nest. Borrows the graph; O(regions) to build.
#pragma once

#include <utility>
#include <vector>

#include "graph/ir/graph.h"

namespace eddy {

class RegionTree {
 public:
  explicit RegionTree(const Graph& graph) : graph_(graph), depth_(graph.num_regions(), 0) {
    // A region has a larger id than the one around it.
    for (uint32_t r = 1; r < graph.num_regions(); ++r) {
      depth_[r] = depth_[parent(RegionId(r)).index()] + 1;
    }
  }

  uint32_t depth(RegionId region) const { return depth_[region.index()]; }
  // The region around one that is not the root.
  RegionId parent(RegionId region) const { return graph_.node(graph_.region(region).owner).region; }
  // The innermost region that both stand in (or are).
  RegionId common(RegionId a, RegionId b) const {
    while (depth(a) > depth(b)) a = parent(a);
    while (depth(b) > depth(a)) b = parent(b);
    while (a != b) {
      a = parent(a);
      b = parent(b);
    }
    return a;
  }
  bool is_within(RegionId inner, RegionId outer) const { return common(inner, outer) == outer; }
  // The node of `outer` that holds `inner`; none when they are the same. `inner` is within.
  NodeId container(RegionId inner, RegionId outer) const {
    NodeId node;
    while (inner != outer) {
      node = graph_.region(inner).owner;
      inner = parent(inner);
    }
    return node;
  }

 private:
  const Graph& graph_;
  std::vector<uint32_t> depth_;
};

}  // namespace eddy
