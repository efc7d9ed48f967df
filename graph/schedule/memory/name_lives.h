// NameLives: when the names of values are made and used, and of which two one is over before the
// other is made: those may share an address.
//
// A name is a root: the value that views of it and parameters of `after` are further names of. It
// is made once in each instance of its home region (the two regions of a loop count as one: an
// iteration): by a node, at the start of an iteration (a carried parameter), or at the end of a
// loop or case (its output). A use inside a loop that does not hold the home is one by the whole
// loop, because other iterations follow; branches of one case exclude each other.
//
// Contract: what is ordered within an iteration; pipelined_loops.h treats overlapping ones.
// part. The order outlives it. Cost: ends_before O(uses of the first * depth).
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/region_tree.h"
#include "graph/schedule/memory/node_order.h"

namespace eddy {

// By ValueId: what the value is a further name of, itself for most.
std::vector<ValueId> find_roots(const Graph& graph);

class NameLives {
 public:
  // `roots`: find_roots' of the graph.
  NameLives(const Graph& graph, const NodeOrder& order, const std::vector<ValueId>& roots);

  // Everything that uses root `a` has surely ended when root `b` is made, or is the very node that
  // makes it and may overwrite it in place.
  bool ends_before(ValueId a, ValueId b) const;
  bool are_apart(ValueId a, ValueId b) const { return ends_before(a, b) || ends_before(b, a); }
  // A node of the writer's region uses the root, on another stream than the node that makes it.
  bool is_used_elsewhere(ValueId root) const;
  // The root is made in one of the loop's regions, or further inside.
  bool is_inside(ValueId root, NodeId loop) const;

 private:
  enum class When : uint8_t { kAtStart, kInside, kAtEnd };
  struct Event {
    RegionId region;
    NodeId node;  // none: of the region itself, at its start or end
    When when = When::kInside;
    RegionId branch = {};  // of a case: where inside
  };

  RegionId iteration_of(RegionId region) const;
  Event made(ValueId root) const;
  Event widened(Event event, RegionId home) const;
  Event lifted(Event event, RegionId iteration) const;
  bool precedes(Event a, Event b) const;
  bool may_overwrite(ValueId read, ValueId written) const;
  void add_uses();

  const Graph& graph_;
  const RegionTree tree_;
  const NodeOrder& order_;
  const std::vector<ValueId>& roots_;
  std::vector<std::vector<Event>> uses_;  // by root
};

}  // namespace eddy
