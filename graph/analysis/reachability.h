// Reachability: the transitive closure, as one bit row for each node.
//
// Row u has bit v set if a path of at least one edge leads from u to v; no node reaches itself.
//
// Memory: num_nodes^2 / 8 bytes: 0.5 MB at 2,000 nodes, 1.25 GB at 100,000. For small graphs, or
// as the obvious model in tests; large graphs use transitive_reduction's sweeps instead.
// Cost: O(edges * nodes / 64).
#pragma once

#include "graph/analysis/dag.h"
#include "graph/base/bit_matrix.h"

namespace eddy {

BitMatrix reachability(const Dag& dag);

}  // namespace eddy
