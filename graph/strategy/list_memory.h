// check_list_memory: whether devices can hold what a list of operators and the lists in it keep.
//
// Alive together are the operators of a list, those of the loops in it (`before` and body), and of
// each branch those of one of its lists: on each device the one that takes most. Weights are there
// from the start, also those of branches that are not taken. Turns of a loop share their memory.
//
// Errors: invalid argument: the device, what it would hold, its limit. Threads: none.
// Cost: linear in the parts, and O(devices) for each list.
#pragma once

#include "graph/base/status.h"
#include "graph/strategy/operator_list.h"

namespace eddy {

Status check_list_memory(const OperatorList& root, const Topology& topology);

}  // namespace eddy
