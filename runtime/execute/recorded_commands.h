// recorded_commands: what a command buffer will do, as nested commands (graph/proof): the plan's
// promise, read back from the code that runs.
//
// Lowering (lowering.h) turns the plan's streams into strands, forks and joins, its two kinds of
// regions into loops, branches and sets that take turns. Nothing of that is believed here: blocks
// come from the code's jumps (code_blocks.h), nodes from what launches point to, streams and events
// from the commands; only what a node reads and writes comes from the graph. So prove_recorded()
// says of the very commands that run what prove_plan() says of the plan.
//
// What nested commands have no word for is checked on the way:
//   events    are reset by the region's main strand before anything of the region uses them, and
//             regions that may be at work together share none
//   strands   are forked by the main one, and end with a record that it waits for
//   nodes     of a region run there, each once; a loop is entered, tested, turned and left, a
//             branch finished, where they should be; rows are stacked behind who makes them
//   open loops (plan.h): both sets do the same; a strand begins where the other set's has ended, a
//             set's events are reset when its strands have ended, and are recorded before the first
//             turn; the loop is left when both sets have ended
// An entry waits for no strand and an exit for all, whatever the plan's frame (frame_waits.h) says.
//
// Errors (kInternal, a defect of Eddy's): what is not as it should be, and where. Buffers that are
// no CommandCode (a device's own) have no code to be read: is_readable() says so.
// Threads: those of RunState. Cost: near linear in commands, then that of prove_program().
#pragma once

#include "graph/program/program.h"
#include "graph/schedule/plan.h"
#include "runtime/execute/run_state.h"

namespace eddy {

bool is_readable(const CommandBuffer& commands);

// Of a state that lower() has recorded.
Result<Program> read_recorded(const Plan& plan, RunState& state);
Status prove_recorded(const Plan& plan, RunState& state);

}  // namespace eddy
