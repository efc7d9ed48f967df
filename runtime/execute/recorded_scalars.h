// RecordedScalars: the nodes of one region of a recording that are no launches of their own: those
// of one element that only others of them read, or what comes behind the region. At its end they
// are steps of a launch that there is anyway (scalar_steps.h).
//
// Internal to ControlRecording. Threads: one. Cost: O(nodes of the graph).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "graph/ir/expression.h"
#include "runtime/device/graph_capture.h"
#include "runtime/device/scalar_steps.h"
#include "runtime/execute/run_state.h"

namespace eddy {

class RecordedScalars {
 public:
  // `uses`: count_uses(). There are none where the capture has no such steps, and where faults are
  // located, which is done between nodes.
  RecordedScalars(const RunState& state, GraphCapture& capture, const std::vector<uint32_t>& uses,
                  RegionId region);

  const Expression* expression_or_null(NodeId node) const {
    const auto at = found_.find(node.index());
    return at == found_.end() ? nullptr : &at->second;
  }
  // Only with an expression of this.
  ScalarSteps& steps() const { return *steps_or_null_; }

 private:
  void find(const Region& region, const std::vector<uint32_t>& uses);
  std::optional<Expression> scalar_of(NodeId node) const;

  const RunState& state_;
  ScalarSteps* const steps_or_null_;
  std::map<uint32_t, Expression> found_;  // by NodeId
};

}  // namespace eddy
