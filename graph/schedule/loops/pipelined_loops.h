// pipeline_loops: lets a loop begin its next iteration while the tail of the last one still runs.
//
// Where a loop's `after` has several streams, a further stream often goes on with what no carried
// value needs: a row to be stacked, a result's last steps. Such a loop is opened (schedule.h): only
// what a name, a byte or a stream demands is waited for.
//
// Demanded is that each command of the tail has ended before a later command touches what it
// touches, one of them changing it: carried values when they move, places of values that are
// written again (a value has one place, whatever the iteration), blocks of the arena that are used
// again, streams that a nested region takes. Waits stand on stream 0, as late as can be: before
// the command that needs them, else before the iteration's streams begin; what the end of the
// iteration or the next one's `before` needs, at the end. None can be left out.
//
// A tail that reads a carried value (or what `before` forwards) need not hold it up: its stream
// takes a reference of its own, as soon as the value is there, and only that is waited for at the
// end. Who writes the value's block again still waits for the reader, within the next iteration: a
// third block would let that go on too, at the price of memory for every carried value.
//
// Bytes are what closes most loops: of 487 loops with several streams in 500 random plans of small
// values (tests/graph/schedule/nested_graphs.h, depth 3) 147 are open, and 335 would be if no byte
// demanded a wait: a third block for what is carried, and no block shared with the next
// iteration's. The arena is laid out for the order within an iteration, at its bound; memory comes
// first here.
//
// Iterations overlap by one: events, strands and tails come in two sets, and an iteration begins
// its streams behind the tails of the last but one. Deeper overlap would make nothing faster: a
// tail follows the last one's on its stream, so the loop can be no faster than its tails, and
// stream 0 one iteration ahead keeps them at work; where it runs further ahead it only waits more
// at the end.
//
// A loop that holds pipelined loops is one command of its region like any other, and may be open
// too. It stays closed when all its tails are demanded at its end, or when three pipelined loops
// stand in one another inside (a body is recorded twice for each around it).
//
// Plans for several devices have the same loops: the tail is often what the CPU does with a row
// that was copied to it. One thing differs. An accelerator's work lets go of its references when it
// is issued, so they keep nobody from writing what it still reads. Its streams therefore take none,
// and what reads a name that shares another's memory there (a view, what a loop or branch hands
// out) has ended when the iteration ends; a name that its maker wrote is waited for where it is
// made again.
//
// Contract: the plan's memory has been laid out. Adds records to regions; events of the machine
// are numbered afterwards. Every plan is proved by program_proof, which shares nothing with this.
// Cost: O(tail commands * commands + blocks of the tail * blocks) for each loop with several
// streams; beyond a million pairs of commands, or eight of blocks, it stays closed.
#pragma once

#include "graph/ir/graph.h"
#include "graph/schedule/plan/schedule.h"

namespace eddy {

void pipeline_loops(const Graph& graph, Schedule& plan);

}  // namespace eddy
