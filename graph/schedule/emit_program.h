// emit_program: a schedule as a program (graph/program/program.h), in which everything is explicit:
// accesses to memory by name, waits at the entry and the end of regions (boundary_waits.h), what
// streams retain, and the rows that loops stack.
//
// Block r is region r, and a name below the number of values is a ValueId; behind them come the
// names of what streams retain, in the order of regions and retains. Events of a block: the
// region's, then one for the entry and one for the end of each further stream, used or not.
//
// Contract: the schedule is whole; its events are numbered. Cost: linear.
#pragma once

#include "graph/ir/graph.h"
#include "graph/program/program.h"
#include "graph/schedule/plan/schedule.h"

namespace eddy {

Program emit_program(const Graph& graph, const Schedule& schedule);

}  // namespace eddy
