// pipeline_loops: lets a loop begin its next iteration while the tail of the last one still runs.
//
// Where a loop's `after` has several streams, a further stream often goes on with what no carried
// value needs: a row to be stacked, a result's last steps. Such a loop is pipelined (schedule.h):
// only what a name, a byte or a stream demands is waited for, and none of these waits can be left
// out. Iterations overlap by one: events, strands and tails come in two sets, and an iteration
// begins its streams behind the tails of the last but one.
//
// A tail that reads a carried value (or what `before` forwards) retains it on its own stream, and
// only that is waited for at the end. The streams of an accelerator retain nothing: its work gives
// up its references when it is issued.
//
// A loop that holds pipelined loops is one command of its region like any other, and may be
// pipelined too, unless all its tails are demanded at its end, or three pipelined loops stand in
// one another inside. README.md has which waits are demanded, where they stand, and why.
//
// Contract: the plan's memory has been laid out. Adds records to regions; events of the machine
// are numbered afterwards. Every plan is proved by program_proof, which shares nothing with this.
// Cost: O(tail commands * commands + blocks of the tail * blocks) for each loop with several
// streams; beyond a million pairs of commands, or eight of blocks, it is not pipelined.
#pragma once

#include "graph/ir/graph.h"
#include "graph/schedule/plan/schedule.h"

namespace eddy {

void pipeline_loops(const Graph& graph, Schedule& plan);

}  // namespace eddy
