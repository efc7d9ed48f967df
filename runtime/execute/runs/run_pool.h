// BoundRun: a run state with what its strands call, and what executes them.
// RunPool: the bound runs of one executable that are not in use, and the code that they execute,
// resolved once for all of them.
//
// The executable must outlive the pool and what it has handed out.
// Threads: any; of a BoundRun those of RunState. Cost: acquire() is O(1) once warm, O(nodes) for a
// new run state.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph/base/short_lock.h"
#include "runtime/execute/control/device_control.h"
#include "runtime/execute/executable.h"
#include "runtime/execute/resolve_program.h"
#include "runtime/execute/run_state.h"
#include "runtime/execute/runs/bind_strands.h"
#include "runtime/trace/trace_recorder.h"

namespace eddy {

class BoundRun final : public RunState {
 public:
  // Bound at once: its strands point into it, so it stays where it is.
  BoundRun(const Executable& executable, std::shared_ptr<const ResolvedProgram> code,
           TraceRecorder* trace_or_null);

  const ResolvedProgram* code() const { return code_.get(); }
  StrandRunner& runner() { return *runner_; }
  std::vector<NodeId> owing_nodes() const { return RunBase::owing_nodes(*runner_); }
  // Where each strand is now and what it waits for, one line each; from any thread.
  std::string describe() const { return describe_strands(*runner_); }

 private:
  void make_device_controls();

  const std::shared_ptr<const ResolvedProgram> code_;
  DeviceControls device_controls_;
  BoundStrands strands_;
  std::unique_ptr<StrandRunner> runner_;
};

class RunPool {
 public:
  explicit RunPool(const Executable& executable);

  // One of the caller's own. Making one takes long and may wait.
  std::unique_ptr<BoundRun> acquire();
  // The same, for a run whose loops stream rows (row_sink.h); no device drives any of its loops.
  std::unique_ptr<BoundRun> acquire_streaming();
  // Whether one is at hand, so that acquire() would build none; a hint where others acquire.
  bool has_free_state();
  // A new one whose calls trace; drop it after its run instead of releasing it.
  std::unique_ptr<BoundRun> make_traced(TraceRecorder& recorder);
  // Puts it back, after its run has ended. One too many goes, with its memory.
  void release(std::unique_ptr<BoundRun> state);
  // Ends those at hand, with their arenas, streams and recordings.
  void trim();

 private:
  enum class Extra : uint8_t { kNone, kSpans, kRows };
  std::shared_ptr<const ResolvedProgram> resolve(Extra extra) const;

  const Executable& executable_;
  const std::shared_ptr<const ResolvedProgram> code_;  // of all runs but traced ones
  ShortLock lock_;
  // Under the lock.
  std::vector<std::unique_ptr<BoundRun>> free_;
  std::shared_ptr<const ResolvedProgram> streaming_code_;  // made when first needed
  std::vector<std::unique_ptr<BoundRun>> free_streaming_;
};

}  // namespace eddy
