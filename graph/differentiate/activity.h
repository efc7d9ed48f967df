// Activity: which values carry adjoints: those that depend on a parameter and reach the loss, along
// edges that have a derivative.
//
// An edge leads from an input of a node to an output where the operator's rule hands something
// back, and through loops and branches from each value to the parameter or output that it becomes
// (initial -> carried -> ..., next -> carried). Integers are reached only from operators without a
// rule, values named as stops not at all. An operator without a rule keeps all its edges, so that
// it is found on an active path and refused, also where it makes integers (QuantizeLinear) that
// become floating point again.
//
// Errors: kUnsupported for an operator without a rule, or a sequence of sequences, on an active
// path: operator, path, which parameter needs it, and how to stop there; kInvalidArgument for
// parameters that the loss does not depend on (where the request says so). Cost: O(edges). Threads:
// pure.
#pragma once

#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/differentiate/gradient_rule.h"
#include "graph/ir/graph.h"

namespace eddy {

struct ActivityRequest {
  ValueId loss;
  std::vector<ValueId> wrt;
  std::vector<ValueId> stops;
};

class Activity {
 public:
  explicit Activity(std::vector<bool> is_active) : is_active_(std::move(is_active)) {}

  bool is_active(ValueId value) const {
    EDDY_DCHECK(value.is_none() || value.index() < is_active_.size()) << "a value of another graph";
    return !value.is_none() && is_active_[value.index()];
  }
  // Whether the node hands adjoints back: an output is active.
  bool is_active(const Node& node) const;
  // By input: the node's rule has to give its gradient.
  std::vector<bool> wanted_inputs(const Node& node, const GradientRule& rule) const;

 private:
  std::vector<bool> is_active_;  // by ValueId
};

Result<Activity> find_activity(const Graph& graph, const GradientTable& rules,
                               const ActivityRequest& request);

// "parameter 'w'" as messages name it.
std::string quoted_name(const Graph& graph, ValueId value);

}  // namespace eddy
