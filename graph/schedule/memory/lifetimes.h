// Lifetimes: which storages may be in use at the same time, in any order of completion that a
// plan allows.
//
// A lifetime stands in its storage's home region: the nodes that touch it (a loop or branch that
// touches it within does so as a whole) and those that write it. One is over before another when
// everything that touches the first has surely ended when any writer of the second starts. Two
// lifetimes of different regions are compared in the innermost region that holds both; branches
// of one case-of, and the two regions of one loop, are never at work at the same time.
//
// Contract: as NodeOrder; the tree and order outlive it.
// Cost: ends_before and overlap O(streams touched * writers * depth), nearly always O(1).
#pragma once

#include <span>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/region_tree.h"
#include "graph/schedule/memory/node_order.h"
#include "graph/schedule/memory/storages.h"

namespace eddy {

struct Lifetime {
  RegionId home;
  std::vector<NodeId> touches;  // the last on each stream
  std::vector<NodeId> writes;   // the first on each stream
  bool lasts_to_end = false;    // of its home region
};

class Lifetimes {
 public:
  Lifetimes(const RegionTree& tree, const NodeOrder& order) : tree_(tree), order_(order) {}

  Lifetime lifetime(RegionId home, std::span<const Access> accesses) const;
  // The lifetime of both together; they have the same home.
  Lifetime united(Lifetime a, const Lifetime& b) const;
  // The lifetime of all accesses inside a node of `region`.
  Lifetime of_node(RegionId region, NodeId node) const { return {region, {node}, {node}, false}; }

  // Both have the same home.
  bool ends_before(const Lifetime& a, const Lifetime& b) const {
    EDDY_DCHECK(a.home == b.home) << "lifetimes of two regions";
    return !a.lasts_to_end && precede(a.touches, b.writes);
  }
  // Of regions that are never at work at the same time: nothing at home in one overlaps what is at
  // home in the other.
  bool exclude(RegionId a, RegionId b) const;
  bool overlap(const Lifetime& a, const Lifetime& b) const {
    if (a.home != b.home) return overlap_across(a, b);
    return !ends_before(a, b) && !ends_before(b, a);
  }

 private:
  // Each of the first precedes each of the second.
  bool precede(std::span<const NodeId> first, std::span<const NodeId> second) const {
    for (const NodeId a : first) {
      for (const NodeId b : second) {
        if (!order_.precedes(a, b)) return false;
      }
    }
    return true;
  }
  bool overlap_across(const Lifetime& a, const Lifetime& b) const;
  void keep_one_a_stream(std::vector<NodeId>& nodes, bool keep_first) const;

  const RegionTree& tree_;
  const NodeOrder& order_;
};

}  // namespace eddy
