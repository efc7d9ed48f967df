// nested_commands: a plan, word for word, as nested commands (nested_command.h).
//
// Names are ValueIds, and behind them one for each reference that a stream of an open loop takes
// (OpenEnd::Take), in the order of regions. Accesses are what the nodes say: inputs are read,
// outputs written, a view's output 0 passed. Cost: O(commands + uses).
#pragma once

#include "graph/ir/graph.h"
#include "graph/proof/nested_command.h"
#include "graph/schedule/plan.h"

namespace eddy {

// By name beyond the graph's values: the value that it refers to.
std::vector<ValueId> taken_names(const Plan& plan);

NestedCommands nested_commands(const Graph& graph, const Plan& plan);

}  // namespace eddy
