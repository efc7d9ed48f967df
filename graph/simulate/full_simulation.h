// Full simulation: FlexFlow's Algorithm 1, as fast as one thread can.
//
// Errors: kCycle and kOverflow as in timeline.h; the timeline is then unspecified.
// Threads: pure; a FullSimulation is the memory that runs reuse, one a thread.
// Cost: O((tasks + edges) log ready) with a four-way heap on 16-byte keys; each task touches its
// 32-byte record, its 32-byte times and those of its successors once.
#pragma once

#include "graph/simulate/ready_queue.h"
#include "graph/simulate/task_graph.h"
#include "graph/simulate/timeline.h"

namespace eddy {

template <TimeValue Time>
class FullSimulation {
 public:
  // Reuses the timeline's memory.
  SimulationResult run(const TaskGraph<Time>& graph, Timeline<Time>& timeline);

 private:
  ReadyQueue queue_;
  std::vector<Time> device_end_;
};

// For callers without a loop around it.
template <TimeValue Time>
SimulationResult simulate_full(const TaskGraph<Time>& graph, Timeline<Time>& timeline) {
  return FullSimulation<Time>().run(graph, timeline);
}

extern template class FullSimulation<int64_t>;
extern template class FullSimulation<double>;

}  // namespace eddy
