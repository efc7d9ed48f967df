// Full simulation: FlexFlow's Algorithm 1, as fast as one thread can; or the rest of it, behind
// tasks that keep their times.
//
// Rejection: with a threshold, run() ends with kExceeds as soon as what a device has done, idled
// and still has to do is above it. The verdict is that of the complete simulation: the bound gives
// away more than sums of work can be wrong by rounding.
//
// Errors: kCycle and kOverflow as in timeline.h; the timeline is then unspecified.
// Threads: pure; a FullSimulation is the memory that runs reuse, one a thread.
// Cost: that of event_loop.h; each task touches its 32-byte record, its 32-byte times and those of
// its successors once.
#pragma once

#include <limits>
#include <vector>

#include "graph/simulate/event_loop.h"
#include "graph/simulate/task_graph.h"
#include "graph/simulate/timeline.h"

namespace eddy {

template <TimeValue Time>
struct FullOptions {
  // The first `num_kept` tasks in the order of this timeline, of the same slots, keep their times:
  // the caller guarantees that Algorithm 1 takes them first, and in this order.
  const Timeline<Time>* old_or_null = nullptr;
  uint32_t num_kept = 0;
  // More ready tasks than these stand in the calendar, and not in a heap.
  uint32_t num_little = EventLoop::kLittle;
  // run() ends with kExceeds when the makespan is above.
  Time threshold = std::numeric_limits<Time>::max();

  bool is_kept(uint32_t slot) const {
    return num_kept > 0 && old_or_null->tasks[slot].position < num_kept;
  }
};

template <TimeValue Time>
class FullSimulation {
 public:
  // Reuses the timeline's memory.
  SimulationResult run(const TaskGraph<Time>& graph, Timeline<Time>& timeline,
                       const FullOptions<Time>& options = {});
  // The number of tasks that the last run took; kept ones do not count.
  uint32_t num_taken() const { return num_taken_; }

 private:
  struct Device {
    Time end;      // of what it has done
    double bound;  // that, and what it still has to do
  };
  struct Tasks;

  void prepare(const Tasks& tasks, const FullOptions<Time>& options);
  double sum_work(const Tasks& tasks);
  template <bool kIsBounded>
  bool take_all(Tasks& tasks, const FullOptions<Time>& options);

  EventLoop loop_;
  std::vector<Device> devices_;
  uint32_t num_taken_ = 0;
};

// Simulates once, for callers without a loop around it.
template <TimeValue Time>
SimulationResult simulate_full(const TaskGraph<Time>& graph, Timeline<Time>& timeline) {
  return FullSimulation<Time>().run(graph, timeline);
}

extern template class FullSimulation<int64_t>;
extern template class FullSimulation<double>;

}  // namespace eddy
