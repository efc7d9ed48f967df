// KeptValues: what the way back reads of the forward pass, by the region in which it was made.
//
// Of a reversed node that is what its rule declares for the inputs that are wanted; of a loop the
// number of its trips, of a case-of its selector; and shapes where zeros have to be made that no
// type describes. Constants, inputs and values of the root are read where they are: only values
// made in loops and branches are kept.
//
//   what         how it comes back
//   value        pushed at the end of its region, popped at the start of the reversed region
//   shape        the same, as int64s; made from the value where that is kept anyway
//   trips        the last iteration number of a loop inside another region
//
// Each element type that is kept has one sequence (the tape), threaded through all regions.
//
// Cost: O(nodes + reads + depth). Threads: pure.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "graph/differentiate/activity.h"
#include "graph/differentiate/gradient_rule.h"
#include "graph/ir/graph.h"

namespace eddy {

struct Kept {
  enum class What : uint8_t { kValue, kShape, kTrips };
  What what = What::kValue;
  uint32_t index = 0;  // ValueId, or for trips NodeId

  auto operator<=>(const Kept&) const = default;
};

class KeptValues {
 public:
  KeptValues(const Graph& graph, const GradientTable& rules, const Activity& activity);

  // In the order of pushing.
  const std::vector<Kept>& of(RegionId region) const { return kept_[region.index()]; }
  bool keeps(RegionId region, Kept item) const;
  ElementType element(const Kept& item) const;
  // The tapes that a control node's regions push to, or those inside them; all for the root.
  const std::set<ElementType>& tapes(RegionId region) const { return tapes_[region.index()]; }
  std::set<ElementType> tapes(const Node& node) const;

 private:
  void add_exec(const Node& node, const GradientTable& rules);
  void add_loop(NodeId id);
  void add_case(const Node& node);
  void need(Kept item, RegionId region);
  void need_value(ValueId value);
  void need_shape(ValueId value);

  const Graph& graph_;
  const Activity& activity_;
  std::vector<std::set<Kept>> needed_;        // by region
  std::vector<std::vector<Kept>> kept_;       // by region
  std::vector<std::set<ElementType>> tapes_;  // by region
};

// The active values of outer regions, constants among them, that a control node's regions use.
std::vector<ValueId> active_captures(const Graph& graph, const Activity& activity, NodeId node);

}  // namespace eddy
