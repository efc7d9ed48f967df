// LoopReports: how each loop of a session is driven, how often it ran in the last run, and all of
// them in all runs.
//
// Internal to runtime/api. Threads: add() while the session is made; the rest any. Cost: a run of a
// graph without loops pays nothing.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/api/session_report.h"
#include "runtime/execute/executable.h"
#include "runtime/execute/run_state.h"

namespace eddy {

class LoopReports {
 public:
  // How the loop is driven as far as is known before the first run.
  void add(NodeId loop, LoopReport report);
  // Of a run whose strands have ended, however that was.
  void count(RunState& state) {
    if (!loops_.empty()) count_all(state);
  }
  uint64_t num_iterations() const { return num_iterations_.load(std::memory_order_relaxed); }
  // Of a run that has made its outputs, before it gives its state back.
  void update(RunState& state, const Executable& executable) {
    if (!loops_.empty()) update_all(state, executable);
  }
  // Work for a device could not be recorded and is issued node by node; the first reason
  // counts, for which it returns true.
  bool note_refusal(const std::string& why);
  std::vector<LoopReport> last() const;
  // Before the first run; without a lock.
  const std::vector<LoopReport>& planned() const { return planned_; }

 private:
  void count_all(RunState& state);
  void update_all(RunState& state, const Executable& executable);
  void update_one(RunState& state, const Executable& executable, size_t i);

  std::vector<NodeId> loops_;
  std::atomic<uint64_t> num_iterations_{0};  // of runs that have ended
  std::vector<LoopReport> planned_;          // by loops_
  mutable std::mutex mutex_;
  std::vector<LoopReport> last_;  // under the mutex
  std::string why_not_recorded_;  // under the mutex
};

}  // namespace eddy
