// print: a graph as stable text and as DOT.
//
// Text: one line a value-defining thing, regions indented under their node, values numbered %0,
// %1, … in order of definition, so equal graphs print equally whatever their ids. Constants show
// type and, when small, contents. DOT: one cluster a region, for Graphviz.
// Cost: O(nodes + values).
#pragma once

#include <string>

#include "graph/ir/graph.h"

namespace eddy {

std::string print_text(const Graph& graph);
std::string print_dot(const Graph& graph);

}  // namespace eddy
