// pipeline_loops: lets a loop begin its next iteration while the tail of the last one still runs.
//
// Where a loop's `after` has several streams, a further stream often goes on with what no carried
// value needs: a row to be stacked, a result's last steps. Such a loop is pipelined (schedule.h): a
// command waits for a tail only where it touches a name, bytes or a stream that the tail touches,
// one of the two changing it. Waits stand on stream 0, as late as they can, and none can be left
// out. A tail that reads a carried value retains it on its own stream, so that the value may move
// on.
//
// Iterations overlap by one. A loop stays as it is when all its tails are demanded at its end, or
// when three pipelined loops stand in one another inside it. Why, and what several devices change,
// is in the README of this folder.
//
// Contract: the plan's memory has been laid out. Adds records to regions; events of the machine are
// numbered afterwards. Every plan is proved by program_proof, which shares nothing with this.
// Cost: O(tail commands * commands + blocks of the tail * blocks) for each loop with several
// streams; beyond a million pairs of commands, or eight million of blocks, the loop stays as it is.
#pragma once

#include "graph/ir/graph.h"
#include "graph/schedule/plan/schedule.h"

namespace eddy {

void pipeline_loops(const Graph& graph, Schedule& plan);

}  // namespace eddy
