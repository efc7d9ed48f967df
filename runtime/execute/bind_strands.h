// bind_strands: what the calls of a resolved program (resolve_program.h) call in one run: its exec
// nodes, loops and branches, which this tells their strands and streams; with an observer or a
// trace, by way of those.
//
// Contract: once for a run state. Threads: those of RunState. Cost: linear in calls.
#pragma once

#include "runtime/execute/resolve_program.h"
#include "runtime/execute/run_state.h"

namespace eddy {

Bindings bind_strands(const ResolvedProgram& program, RunState& state,
                      TraceRecorder* trace_or_null = nullptr);

// Kernels are told the driver's streams, now and whenever the runner has others.
void bind_streams(const ResolvedProgram& program, RunState& state, StrandRunner& runner);

}  // namespace eddy
