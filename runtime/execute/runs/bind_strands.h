// bind_strands: what the calls of a resolved program (resolve_program.h) call in one run: its exec
// nodes, loops and branches, which this tells their strands and streams; with an observer, a trace
// or times of operators, by way of those.
//
// Contract: once for a run state. Threads: those of RunState. Cost: linear in calls.
#pragma once

#include <deque>
#include <vector>

#include "runtime/execute/control/device_control.h"
#include "runtime/execute/resolve_program.h"
#include "runtime/execute/run_state.h"
#include "runtime/execute/runs/observed_step.h"
#include "runtime/execute/runs/operator_times.h"
#include "runtime/execute/runs/trace_marks.h"
#include "runtime/execute/values/row_sink.h"

namespace eddy {

// Slots that a command of its own releases.
struct ReleaseList {
  std::vector<Slot*> slots;
  size_t min_bytes = 0;

  static bool run(void* list) {
    const auto& self = *static_cast<const ReleaseList*>(list);
    for (Slot* slot : self.slots) slot->release(self.min_bytes);
    return true;
  }
};

// Bindings, and what they point to besides the run state; addresses stay.
struct BoundStrands {
  Bindings bindings;
  std::deque<TraceMark> trace_marks = {};
  std::deque<ObservedStep> observed_steps = {};
  std::deque<ObservedCall> observed_calls = {};
  std::deque<TimedCall> timed_calls = {};
  std::deque<TimedStart> timed_starts = {};
  std::deque<RowGate> row_gates = {};
  std::deque<ReleaseList> release_lists = {};
};

BoundStrands bind_strands(const ResolvedProgram& program, RunState& state,
                          const DeviceControls& device_controls,
                          TraceRecorder* trace_or_null = nullptr);

// Gives kernels the driver's streams, now and whenever the runner has others.
void bind_streams(const ResolvedProgram& program, RunState& state,
                  const DeviceControls& device_controls, StrandRunner& runner);

}  // namespace eddy
