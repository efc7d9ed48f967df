// number_events: gives each region of a plan its events of the machine.
//
// Regions of one loop or branch share them, unless they may be at work together: the regions of an
// pipelined loop may. A region and those inside it share none.
//
// Contract: loops have been opened, as they need more events. Sets first_event of every region and
// num_events of the plan. Cost: O(commands).
#pragma once

#include "graph/ir/graph.h"
#include "graph/schedule/plan/schedule.h"

namespace eddy {

void number_events(const Graph& graph, Schedule& plan);

}  // namespace eddy
