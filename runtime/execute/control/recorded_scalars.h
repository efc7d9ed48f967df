// RecordedScalars: the nodes of one region of a recording that are no launches of their own: those
// of one element that only others of them read, or what comes behind the region; and those of many
// elements that make a carried value. At its end they are steps of a launch that there is anyway
// (scalar_steps.h).
//
// Where a carried value is written last: a node that makes the next value of a parameter writes it
// to the parameter's home, where the next iteration reads it, if nothing needs the old value by
// then. It is copied nowhere, and a node of many elements is a part of the launch at the end only
// if it is so.
//
// Internal to ControlRecording. Threads: one. Cost: O(nodes of the graph).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/expression.h"
#include "runtime/device/graph_capture.h"
#include "runtime/device/scalar_steps.h"
#include "runtime/execute/run_state.h"

namespace eddy {

class RecordedScalars {
 public:
  // `uses`: count_uses(). No nodes are part of another launch where the capture has no such steps,
  // and where faults are located, which is done between nodes.
  RecordedScalars(const RunState& state, GraphCapture& capture, const std::vector<uint32_t>& uses,
                  RegionId region);

  const Expression* expression_or_null(NodeId node) const {
    const auto at = found_.find(node.index());
    return at == found_.end() ? nullptr : &at->second;
  }
  // The parameter of the loop whose home is where this result is written; none: of its own.
  ValueId written_home(ValueId result) const {
    const auto at = written_homes_.find(result.index());
    return at == written_homes_.end() ? ValueId() : at->second;
  }
  // Only with an expression of this.
  ScalarSteps& steps() const {
    EDDY_DCHECK(steps_or_null_ != nullptr) << "the capture has no steps";
    return *steps_or_null_;
  }

 private:
  using Readers = std::vector<std::vector<NodeId>>;  // by ValueId

  void find(const std::vector<uint32_t>& uses, const Readers& readers);
  void find_home_writers(const std::vector<uint32_t>& uses, const Readers& readers);
  bool may_write_home(ValueId made, ValueId parameter, const std::vector<NodeId>& order) const;
  bool is_read_after(ValueId made, ValueId parameter) const;
  std::optional<Expression> expression_of(NodeId node) const;
  bool is_of_one_element(NodeId node) const;
  bool is_of_equal_elements(NodeId node) const;

  const RunState& state_;
  const RegionId region_;
  ScalarSteps* const steps_or_null_;
  std::map<uint32_t, Expression> found_;       // by NodeId
  std::map<uint32_t, ValueId> written_homes_;  // by ValueId
};

}  // namespace eddy
