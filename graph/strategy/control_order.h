// control_order: in which order the loops and branches of one list are made (make_scenarios.h):
// each after those it reads, at any depth, wherever they stand. Those that wait for one another
// come last; scenario.h refuses them.
//
// Errors: none. Threads: pure. Cost: O(n log n) in the names that stand in the loops and branches.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/strategy/operator_list.h"

namespace eddy {

std::vector<uint32_t> control_order(const OperatorList& list);

}  // namespace eddy
