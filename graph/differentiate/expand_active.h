// expand_active: nodes whose rule is an expansion (GradientRule::expand) are replaced by the nodes
// that it makes, where they lie between a parameter and the loss; all else is copied.
//
// Values keep their names, so names of parameters, losses and stops mean what they meant. Internal
// to graph/differentiate. The graph is taken over, and returned as it is where there is no such
// node. Errors: the builder's. Cost: O(nodes). Threads: pure.
#pragma once

#include "graph/base/status.h"
#include "graph/differentiate/activity.h"
#include "graph/differentiate/gradient_rule.h"
#include "graph/ir/graph.h"

namespace eddy {

bool has_active_expansion(const Graph& graph, const GradientTable& rules, const Activity& activity);
Result<Graph> expand_active(Graph graph, const OpTable& ops, const GradientTable& rules,
                            const Activity& activity);

}  // namespace eddy
