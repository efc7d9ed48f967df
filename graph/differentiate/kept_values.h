// KeptValues: what the way back reads of the forward pass, by the region in which it was made, and
// how it gets there.
//
// Of a reversed node that is what its rule declares for the inputs that are wanted; of a loop the
// number of its trips, of a case-of its selector; and shapes where zeros have to be made that no
// type describes. Each is of one class:
//
//   captured  constants, inputs and values of the root are read where they are
//   derived   made by a cheap operator (GradientTable) of what is there anyway; and numbers of
//             iterations: made again in the reversed region
//   rows      in loops without control flow inside, where shapes are fixed by types: values of
//             `after` are rows of the loop; those of `before` travel through `after`, the last
//             ones are results
//   pushed    elsewhere: at the end of their region on a tape, popped at the start of the reversed
//             one
//
// What a loop inside another region stacks is kept of that region in turn. A shape is not kept
// where its value is. Each element type that is pushed has one sequence (the tape), threaded
// through all regions.
//
// A loop that is to keep less (save_policy.h) keeps its state: those carried values from which its
// regions' values can be made again, by the nodes of again(). What is pushed then is on tapes that
// begin and end in the reversed loop.
//
// Cost: O(nodes + reads + depth). Threads: pure.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/differentiate/activity.h"
#include "graph/differentiate/gradient_rule.h"
#include "graph/differentiate/save_policy.h"
#include "graph/ir/control_view.h"
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
  // Borrows all but `policies`, which name loops of the graph.
  KeptValues(const Graph& graph, const GradientTable& rules, const Activity& activity,
             const SavePolicies& policies);

  // Rows, or pushed, in the order of pushing. Of a loop with segments: in one of these. Nothing
  // where an iteration is made again as a whole.
  const std::vector<Kept>& of(RegionId region) const {
    EDDY_DCHECK(region.index() < kept_.size()) << "region " << region.index();
    return kept_[region.index()];
  }
  // Whether they are rows, so that the loop's regions push nothing.
  bool uses_rows(NodeId loop) const { return uses_rows_[loop.index()]; }
  // Nodes to be made again in the reversed region, in order; and whether it reads the number of its
  // iteration.
  const std::vector<NodeId>& derived(RegionId region) const { return derived_[region.index()]; }
  bool reads_iteration(RegionId region) const { return reads_iteration_[region.index()]; }
  bool is_derived(ValueId value) const { return is_derived_[value.index()]; }

  const SavePolicy& policy(NodeId loop) const {
    EDDY_DCHECK(loop.index() < policies_.size()) << "node " << loop.index();
    return policies_[loop.index()];
  }
  // Why a loop keeps all though less was asked for; else empty.
  std::string why_all(NodeId loop) const;
  // Of a loop that does not keep all: carried values, each region's nodes that make the others
  // again, and whether the state is rows of the loop, else pushed.
  const std::vector<Kept>& state(NodeId loop) const { return states_[loop.index()]; }
  const std::vector<NodeId>& again(RegionId region) const { return again_[region.index()]; }
  bool has_state_rows(NodeId loop) const;

  ElementType element(const Kept& item) const;
  // The tapes that a control node takes and returns; those of a region, all for the root.
  std::set<ElementType> tapes(const Node& node) const;
  const std::set<ElementType>& tapes(RegionId region) const { return tapes_[region.index()]; }
  // Those that begin and end in the reversed loop.
  std::set<ElementType> inner_tapes(const LoopView& loop) const;

  // Values that reversed nodes of `first` read where they are, from outside of all loops.
  const std::set<std::pair<RegionId, ValueId>>& captured() const { return captured_; }

 private:
  void choose_policies(const SavePolicies& policies);
  void add_exec(const Node& node, const GradientTable& rules);
  void add_loop(NodeId id);
  void add_case(const Node& node);
  void need(Kept item, RegionId region);
  void collect(RegionId region);
  void derive(RegionId region, std::set<Kept>& items);
  bool is_at_hand(ValueId value, RegionId region) const;
  void choose_form(NodeId loop);
  bool fit_rows(const LoopView& loop) const;
  bool may_be_row(const Kept& item) const;
  void push_all(RegionId region);
  void need_value(ValueId value, RegionId reader);
  void need_shape(ValueId value);

  // kept_again.cc
  class Slice;
  void choose_state(NodeId loop);

  const Graph& graph_;
  const GradientTable& rules_;
  const Activity& activity_;
  std::vector<std::set<Kept>> needed_;        // by region
  std::vector<std::vector<Kept>> kept_;       // by region
  std::vector<std::vector<NodeId>> derived_;  // by region
  std::vector<std::vector<NodeId>> again_;    // by region
  std::vector<std::set<ElementType>> tapes_;  // by region
  std::vector<bool> reads_iteration_;         // by region
  std::vector<bool> is_derived_;              // by value
  std::vector<bool> uses_rows_;               // by node
  std::vector<SavePolicy> policies_;          // by node
  std::vector<std::vector<Kept>> states_;     // by node
  std::vector<std::string> why_all_;          // by node: a loop's, where it was asked for less
  std::set<std::pair<RegionId, ValueId>> captured_;
};

// The active values of outer regions, constants among them, that a control node's regions use.
std::vector<ValueId> active_captures(const Graph& graph, const Activity& activity, NodeId node);

// Calls visit(value) for all that nodes and results of the regions inside the node use.
template <typename Visit>
void for_each_use_inside(const Graph& graph, const Node& node, const Visit& visit) {
  for (const RegionId id : node.regions) {
    const Region& region = graph.region(id);
    for (const NodeId inner : region.nodes) {
      for (const ValueId value : graph.node(inner).inputs) visit(value);
      for_each_use_inside(graph, graph.node(inner), visit);
    }
    for (const ValueId value : region.results) visit(value);
  }
}

}  // namespace eddy
