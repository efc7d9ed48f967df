// RegionTree: how the regions of a graph nest. A view: borrows the graph and stores nothing.
//
// A region has a larger id than the one around it, so of two different regions the one with the
// larger id does not hold the other. Cost: O(depth) for each question.
#pragma once

#include "graph/base/check.h"
#include "graph/ir/graph.h"

namespace eddy {

class RegionTree {
 public:
  explicit RegionTree(const Graph& graph) : graph_(graph) {}

  // The region around one that is not the root.
  RegionId parent(RegionId region) const { return graph_.node(owner(region)).region; }
  NodeId owner(RegionId region) const { return graph_.region(region).owner; }
  // How many are around it.
  uint32_t depth(RegionId region) const {
    uint32_t depth = 0;
    for (; region != Graph::kRoot; region = parent(region)) ++depth;
    return depth;
  }
  // The innermost region that both stand in (or are).
  RegionId common(RegionId a, RegionId b) const {
    EDDY_DCHECK(!a.is_none() && !b.is_none()) << "a region is missing";
    while (a != b) (a > b ? a : b) = parent(a > b ? a : b);
    return a;
  }
  bool is_within(RegionId inner, RegionId outer) const { return common(inner, outer) == outer; }
  // Whether it is one of the control node's regions, or inside one of them.
  bool is_inside(RegionId region, NodeId node) const {
    for (; region != Graph::kRoot; region = parent(region)) {
      if (owner(region) == node) return true;
    }
    return false;
  }
  // The node of `outer` that holds `inner`; none when they are the same. `inner` is within.
  NodeId container(RegionId inner, RegionId outer) const {
    EDDY_DCHECK(is_within(inner, outer))
        << "region " << inner.index() << " is not in " << outer.index();
    NodeId node;
    for (; inner != outer; inner = parent(inner)) node = owner(inner);
    return node;
  }

 private:
  const Graph& graph_;
};

}  // namespace eddy
