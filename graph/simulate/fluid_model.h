// The fluid model: when a program's steps run on one device, whose streams are orderings and not
// devices of their own.
//
// Two things happen to a step. The one serial host issues it: steps of different streams in the
// order of the root's list, as far as they need not wait; while one stream waits for a decision the
// others' steps are issued. Then it runs in its stream: after what stands before it there, and
// after the events it waits for. Records and waits order streams, and nothing else does: a further
// stream of a block rests until its first wait is over, and again when it has ended. Kernels that
// are at work together share the machine (fluid_sharing.h); between two events of the simulation
// their rates are constant, so the timeline is exact, and the same every time.
//
// On a CPU (FluidMachine::num_workers > 0) a stream is a strand: woken it needs a worker, which
// costs handoff_ns where one is awake, wake_ns where it sleeps, and less where another strand ends
// or waits meanwhile and its worker takes it.
//
// A loop of more than max_rounds trips is simulated by max_rounds of them, each standing for
// several: all times inside count as many times. So the cost does not grow with trips.
//
// Errors: those of check_fluid_costs; resource exhausted beyond max_steps.
// Threads: pure. Cost: O(steps * (streams at work + log)); a step is one that runs.
#pragma once

#include "graph/base/status.h"
#include "graph/simulate/fluid_costs.h"
#include "graph/simulate/fluid_timeline.h"

namespace eddy {

Result<FluidTimeline> simulate_fluid(const Program& program, const FluidCosts& costs,
                                     const FluidMachine& machine, const FluidOptions& options = {});

}  // namespace eddy
