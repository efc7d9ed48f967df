// LoadSink: what the tasks that a TaskEmitter emits would add to the loads of the simulated
// devices, with nothing emitted. A change that makes a device too busy is known at a fraction of
// its cost.
//
// Threads: none. Cost: O(1) a task.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "graph/base/check.h"
#include "graph/simulate/task_graph.h"
#include "graph/strategy/tasks/task_label.h"

namespace eddy {

struct LoadSink {
  std::span<double> loads;  // by simulated device
  double& peak;             // at least the largest that was added to

  uint32_t task(const TaskSpec<double>& spec, const TaskLabel&) const {
    add(spec);
    return 0;
  }
  void dep(uint32_t, uint32_t) const {}
  void local_dep(uint32_t, uint32_t, const TaskLabel&) const {}
  void transfer(const TaskSpec<double>& spec, const TaskLabel&, uint32_t, uint32_t) const {
    add(spec);
  }

 private:
  void add(const TaskSpec<double>& spec) const {
    EDDY_DCHECK(spec.device < loads.size()) << "device " << spec.device << " is not simulated";
    peak = std::max(peak, loads[spec.device] += spec.exe_time);
  }
};

}  // namespace eddy
