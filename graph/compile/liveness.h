// live_nodes: which nodes' results can reach an output. By NodeId; O(nodes + uses).
#pragma once

#include <vector>

#include "graph/ir/graph.h"

namespace eddy {

// Nodes with effects outside the graph (host functions, communication) are always live.
std::vector<bool> live_nodes(const Graph& graph);

// By ValueId: whether a node, a region's results or the graph's outputs read it.
std::vector<bool> read_values(const Graph& graph);

}  // namespace eddy
