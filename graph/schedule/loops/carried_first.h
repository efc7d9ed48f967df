// put_carried_first: makes stream 0 of a loop's `after` one that ends with what the next iteration
// needs, so that the others may go on meanwhile (pipelined_loops.h).
//
// Which stream of its device is the first is free to choose: of those that end with such a node the
// one with the most of them is taken, unless the first is one already.
//
// Returns true when another stream ends with what the next iteration does not need.
// Contract: `region` is some loop's `after`, planned, on several streams.
// Cost: O(nodes and uses in the region).
#pragma once

#include "graph/ir/graph.h"
#include "graph/schedule/plan/schedule.h"

namespace eddy {

bool put_carried_first(const Graph& graph, RegionId region, RegionSchedule& plan);

}  // namespace eddy
