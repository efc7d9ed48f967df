// only_readers: by ValueId the one exec node that reads a value, in the value's own region; none
// where there are several, a node that reads it twice, a loop or branch, a region's result, or no
// reader at all. What a pass may join with the node that makes the value.
#pragma once

#include <vector>

#include "graph/ir/graph.h"

namespace eddy {

std::vector<NodeId> only_readers(const Graph& graph);

}  // namespace eddy
