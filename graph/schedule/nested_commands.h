// nested_commands: a plan, word for word, as nested commands (nested_command.h).
//
// Names are ValueIds. Accesses are what the nodes say: inputs are read, outputs written, a view's
// output 0 passed. Cost: O(commands + uses).
#pragma once

#include "graph/ir/graph.h"
#include "graph/schedule/nested_command.h"
#include "graph/schedule/plan.h"

namespace eddy {

NestedCommands nested_commands(const Graph& graph, const Plan& plan);

}  // namespace eddy
