#include "graph/simulate/full_simulation.h"

#include <algorithm>

#include "graph/simulate/blame.h"

namespace eddy {

template <TimeValue Time>
SimulationResult FullSimulation<Time>::run(const TaskGraph<Time>& graph, Timeline<Time>& timeline) {
  using Task = typename TaskGraph<Time>::Task;
  const uint32_t num_slots = graph.num_slots();
  const Task* const tasks = graph.tasks();
  timeline.tasks.resize(num_slots);
  timeline.order.resize(graph.num_tasks());
  TaskTimes<Time>* const times = timeline.tasks.data();
  uint32_t* const order = timeline.order.data();
  device_end_.assign(graph.num_devices(), 0);
  queue_.clear();

  // While a task waits, `position` counts the predecessors it waits for.
  for (uint32_t slot = 0; slot < num_slots; ++slot) {
    const Task& task = tasks[slot];
    times[slot] = {0, 0, 0, task.is_live() ? task.num_predecessors : kNoSlot};
    if (times[slot].position == 0) queue_.put(ready_key(0, task.rank, slot));
  }
  uint32_t num_done = 0;
  while (!queue_.is_empty()) {
    const uint32_t slot = slot_of(queue_.take());
    const Task& task = tasks[slot];
    TaskTimes<Time>& own = times[slot];
    Time& device_end = device_end_[task.device];
    own.start = std::max(own.ready, device_end);
    const Time end = own.end = device_end = add_times(own.start, task.exe_time);
    own.position = num_done;
    order[num_done++] = slot;
    for (const uint32_t successor : graph.successors(slot)) {
      TaskTimes<Time>& next = times[successor];
      next.ready = std::max(next.ready, end);
      if (--next.position == 0) {
        queue_.put(ready_key(time_key(next.ready), tasks[successor].rank, successor));
      }
    }
  }
  timeline.makespan = device_end_.empty() ? 0 : *std::ranges::max_element(device_end_);
  if (num_done < graph.num_tasks()) return blame_cycle(graph, timeline, num_done);
  if (may_be_overflow(timeline.makespan)) return blame_overflow(graph, timeline);
  return {};
}

template class FullSimulation<int64_t>;
template class FullSimulation<double>;

}  // namespace eddy
