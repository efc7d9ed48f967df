// open_loops: lets a loop begin its next iteration while the tail of the last one still runs.
//
// Where a loop's `after` has several streams, a further stream often goes on with what no carried
// value needs: a row to be stacked, a result's last steps. Such a loop is opened (plan.h): only
// what a name, a byte or a stream demands is waited for.
//
// Demanded is that each command of the tail has ended before a later command touches what it
// touches, one of them changing it: carried values when they move, places of values that are
// written again (a value has one place, whatever the iteration), blocks of the arena that are used
// again, streams that a nested region takes. Waits stand on stream 0, as late as can be: before
// the command that needs them, else before the iteration's streams begin; what the end of the
// iteration or the next one's `before` needs, at the end. None can be left out.
//
// A loop that holds open loops is one command of its region like any other, and may be open too. It
// stays closed when all its tails are demanded at its end, when three open loops stand in one
// another inside (a body is recorded twice for each around it), or in a plan for several devices.
//
// Contract: the plan's memory has been laid out. Adds records to regions; events of the machine
// are numbered afterwards. Every plan is proved by nested_proof, which shares nothing with this.
// Cost: O(tail commands * commands) for each loop with several streams; beyond kMaxPairs it stays
// closed.
#pragma once

#include "graph/ir/graph.h"
#include "graph/schedule/plan.h"

namespace eddy {

void open_loops(const Graph& graph, Plan& plan);

}  // namespace eddy
