// lower: turns a plan into the commands of one run state's command buffer.
//
// Streams of a region become strands: stream 0 is the strand that runs the control node, each
// further stream is forked when the region is entered and joined before it ends, so a loop's
// next iteration finds all its strands at rest. Where the plan has no wait for the entry or at the
// exit (frame_waits.h), its other waits order what fork and join order. A strand runs on the
// machine's stream that the plan gave to its region: that names its lane in a trace, its scratch
// memory, and the device's stream where the host drives. Records and waits become the plan's
// events, reset at each entry; regions that exclude each other share them.
//
// An open loop (graph/schedule/plan.h) forks its further streams anew for each iteration, too, but
// joins them at its end only: the strand of one iteration begins where that of the last has ended,
// and the main one may be up to one iteration ahead. Its body is recorded twice, with a set of
// strands and events each; when a set is used again, all that waited for its events has gone on.
//
//   main       wait begun(other set) · reset set · fork … · its commands · advance
//   stream s   wait end(other set) · record begun(set) · its commands · record end(set)
//
// The same commands drive a loop from the device (the device's own command buffer) or from the
// host (HostCommandBuffer): both have one meaning.
#pragma once

#include "graph/schedule/plan.h"
#include "runtime/execute/run_state.h"

namespace eddy {

// With a recorder, each node, loop, iteration and branch becomes a span in the lane of its stream.
void lower(const Plan& plan, RunState& state, TraceRecorder* trace_or_null = nullptr);

}  // namespace eddy
