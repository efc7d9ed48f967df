// region_dag: the dependences among the nodes of one region as a bare DAG.
//
// Node i of the Dag is Region::nodes[i]. There is an edge from the node that makes a value to
// every node of the region that reads it: as an input, or captured by one of its own regions.
// Values from outside the region order nothing inside it. Cost: O(nodes + uses).
#pragma once

#include "graph/analysis/dag.h"
#include "graph/ir/graph.h"

namespace eddy {

Dag region_dag(const Graph& graph, RegionId region);

}  // namespace eddy
