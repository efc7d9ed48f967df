// boundary_waits: which of a region's further streams wait for its entry, and which its exit waits
// for. put_fewest_boundary_waits_first: makes the stream with which these are fewest its stream 0.
//
// A region's entry stands on its stream 0 behind all that its control node comes after; nothing of
// the region is before it. Its exit stands there, too, and all that follows the control node is
// behind it. So both are nodes of the region like others, with an edge from the entry to each node
// and from each node to the exit, and the fewest waits are found as between nodes (sync_plan.h):
// the entry is waited for by sources, nodes that come after no other, and the exit waits for sinks.
// A stream that begins with a wait for another node, or ends with a record that another waits for,
// has neither.
//
// They are exact for a control node that is one launch of its parent: it waits for all that its
// regions read, on whatever stream inside, and what follows waits for all of it. A source that
// reads nothing from outside waits for the entry all the same: nothing of a region begins before it
// is decided that it runs, and its blocks and its stream may be in use before. Two iterations of a
// loop are ordered in the same way: an exit, the turn, the next entry.
//
// The `after` of a pipelined loop has no exit: steps of its own wait for what the next iteration
// needs. Its entry is like any other, in each iteration.
//
// Any stream of its control node's device can be a region's stream 0: best is one that begins with
// a source and ends with a sink (exchange_tails.h makes one for `matching`). Cost: O(commands).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/schedule/plan/schedule.h"

namespace eddy {

// Streams of the region, ascending, never 0.
struct BoundaryWaits {
  std::vector<uint32_t> entry;  // begin behind the entry, with a source or what it retains
  std::vector<uint32_t> exit;   // end with a sink, which the exit waits for
};

BoundaryWaits boundary_waits(const RegionSchedule& plan);

// Exchanges stream 0 with the one of its device with which the frame has the fewest waits; of
// equals the lowest number. `plan` is not open and its streams are not the machine's yet.
void put_fewest_boundary_waits_first(RegionSchedule& plan);

}  // namespace eddy
