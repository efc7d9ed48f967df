// print_text: a graph as stable text.
//
// One line a value-defining thing, regions indented under their node, values numbered %0, %1, … in
// order of definition, so equal graphs print equally whatever their ids. Constants show type and,
// when small, contents.
// Cost: O(nodes + values).
#pragma once

#include <string>

#include "graph/ir/graph.h"

namespace eddy {

std::string print_text(const Graph& graph);

}  // namespace eddy
