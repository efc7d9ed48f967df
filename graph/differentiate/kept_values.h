// KeptValues: what the way back reads of the forward pass, by the region in which it was made.
//
// Of a reversed node that is what its rule declares for the inputs that are wanted; of a loop the
// number of its trips, of a case-of its selector; and shapes where zeros have to be made that no
// type describes. Constants, inputs and values of the root are read where they are: only values
// made in loops and branches are kept.
//
//   rows     in loops without control flow inside, where shapes are fixed by types: values of
//   `after`
//            are rows of the loop; those of `before` travel through `after`, the last ones are
//            results
//   pushed   elsewhere: at the end of their region on a tape, popped at the start of the reversed
//   one
//
// What a loop inside another region stacks is kept of that region in turn. A shape is not kept
// where its value is.
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
  enum class What : uint8_t { kValue, kShape, kTrips };  // trips: a loop's last iteration number
  enum class Form : uint8_t { kItself, kRows, kLast };   // all of a loop's iterations, the last one
  What what = What::kValue;
  uint32_t index = 0;  // ValueId, or for trips NodeId
  Form form = Form::kItself;

  Kept as(Form of) const { return {what, index, of}; }

  auto operator<=>(const Kept&) const = default;
};

class KeptValues {
 public:
  KeptValues(const Graph& graph, const GradientTable& rules, const Activity& activity);

  // In the order of pushing.
  const std::vector<Kept>& of(RegionId region) const { return kept_[region.index()]; }
  // Whether the loop keeps rows, so that its regions push nothing.
  bool uses_rows(NodeId loop) const { return uses_rows_[loop.index()]; }
  ElementType element(const Kept& item) const;
  // The tapes that a control node's regions push to, or those inside them; all for the root.
  const std::set<ElementType>& tapes(RegionId region) const { return tapes_[region.index()]; }
  std::set<ElementType> tapes(const Node& node) const;

 private:
  void add_exec(const Node& node, const GradientTable& rules);
  void add_loop(NodeId id);
  void add_case(const Node& node);
  void need(Kept item, RegionId region);
  void collect(RegionId region);
  void choose_form(NodeId loop);
  bool may_be_row(const Kept& item) const;
  void push_all(RegionId region);
  void need_value(ValueId value);
  void need_shape(ValueId value);

  const Graph& graph_;
  const Activity& activity_;
  std::vector<std::set<Kept>> needed_;        // by region
  std::vector<std::vector<Kept>> kept_;       // by region
  std::vector<std::set<ElementType>> tapes_;  // by region
  std::vector<bool> uses_rows_;               // by node
};

// The active values of outer regions, constants among them, that a control node's regions use.
std::vector<ValueId> active_captures(const Graph& graph, const Activity& activity, NodeId node);

}  // namespace eddy
