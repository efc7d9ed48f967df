// The symbolic dimensions that the types of a graph's values name.
//
// Cost: O(values).
#pragma once

#include <set>
#include <string>

#include "graph/ir/graph.h"

namespace eddy {

std::set<std::string> symbolic_dims(const Graph& graph);

}  // namespace eddy
