// DeltaSimulation::resimulate(): the way to go where most of what follows an edit changes, as in
// training, where a delay moves everything behind it. The old timeline stays as it is, so that
// rolling back is a swap.
#include <algorithm>
#include <utility>

#include "graph/simulate/blame.h"
#include "graph/simulate/delta_simulation.h"

namespace eddy {

template <TimeValue Time>
void DeltaSimulation<Time>::resimulate() {
  for (const SavedTimes& saved : saved_) at(saved.slot) = saved.times;
  saved_.clear();
  queue_.clear();
  statistics_ = {.has_resimulated = true};
  if (pause_ == 0) pause_ = 1;

  replay_prefix();
  const bool is_bounded = options_.threshold != std::numeric_limits<Time>::max();
  const uint32_t num_done = is_bounded ? simulate_rest<true>() : simulate_rest<false>();
  statistics_.num_processed = num_done - first_;
  if (!result_.is_done()) return;
  if (num_done < graph_.num_tasks()) {
    result_ = blame_cycle(graph_, spare_, num_done);
    return;
  }
  spare_.makespan = device_end_.empty() ? 0 : *std::ranges::max_element(device_end_);
  if (may_be_overflow(spare_.makespan)) {
    result_ = blame_overflow(graph_, spare_);
    if (!result_.is_done()) return;
  }
  if (spare_.makespan > options_.threshold) {  // what stands before is not looked at on the way
    result_ = {SimulationEnd::kExceeds, {}};
    return;
  }
  std::swap(timeline_, spare_);
  is_swapped_ = true;
}

// What stands before the first instant touched keeps its times. While another task waits,
// `position` counts the predecessors it waits for, as in full_simulation.
template <TimeValue Time>
void DeltaSimulation<Time>::replay_prefix() {
  const uint32_t num_slots = graph_.num_slots();
  const auto* const tasks = graph_.tasks();
  const TaskTimes<Time>* const old = timeline_.tasks.data();
  spare_.tasks.resize(num_slots);
  spare_.order.resize(graph_.num_tasks());
  TaskTimes<Time>* const times = spare_.tasks.data();
  device_end_.assign(graph_.num_devices(), 0);
  work_left_.assign(graph_.num_devices(), 0);
  for (uint32_t slot = 0; slot < num_slots; ++slot) {
    const auto& task = tasks[slot];
    if (!task.is_live()) {
      times[slot] = {0, 0, 0, kNoSlot};
      continue;
    }
    const bool is_kept = old[slot].position < first_;
    times[slot] = is_kept ? old[slot] : TaskTimes<Time>{0, 0, 0, task.num_predecessors};
    if (is_kept) continue;
    work_left_[task.device] += static_cast<double>(task.exe_time);
    if (task.num_predecessors == 0) queue_.put(ready_key(0, task.rank, slot));
  }
  for (uint32_t i = 0; i < first_; ++i) {
    const uint32_t slot = spare_.order[i] = timeline_.order[i];
    const Time end = device_end_[tasks[slot].device] = times[slot].end;
    for (const uint32_t successor : graph_.successors(slot)) {
      if (old[successor].position < first_) continue;
      TaskTimes<Time>& next = times[successor];
      next.ready = std::max(next.ready, end);
      if (--next.position == 0) {
        queue_.put(ready_key(time_key(next.ready), tasks[successor].rank, successor));
      }
    }
  }
}

// The number of tasks that came to their turn, the prefix included.
template <TimeValue Time>
template <bool kIsBounded>
uint32_t DeltaSimulation<Time>::simulate_rest() {
  const double limit = static_cast<double>(options_.threshold) / (1 - kRounding);
  const auto* const tasks = graph_.tasks();
  TaskTimes<Time>* const times = spare_.tasks.data();
  uint32_t num_done = first_;
  while (!queue_.is_empty()) {
    const uint32_t slot = slot_of(queue_.take());
    const auto& task = tasks[slot];
    TaskTimes<Time>& own = times[slot];
    Time& device_end = device_end_[task.device];
    own.start = std::max(own.ready, device_end);
    const Time end = own.end = device_end = add_times(own.start, task.exe_time);
    own.position = num_done;
    spare_.order[num_done++] = slot;
    if constexpr (kIsBounded) {
      double& left = work_left_[task.device];
      left -= static_cast<double>(task.exe_time);
      if (end > options_.threshold || static_cast<double>(end) + left > limit) {
        const bool is_overflow = sum_overflows(own.start, task.exe_time);
        result_ = is_overflow ? SimulationResult{SimulationEnd::kOverflow, {slot}}
                              : SimulationResult{SimulationEnd::kExceeds, {}};
        return num_done;
      }
    }
    for (const uint32_t successor : graph_.successors(slot)) {
      TaskTimes<Time>& next = times[successor];
      next.ready = std::max(next.ready, end);
      if (--next.position == 0) {
        queue_.put(ready_key(time_key(next.ready), tasks[successor].rank, successor));
      }
    }
  }
  return num_done;
}

template class DeltaSimulation<int64_t>;
template class DeltaSimulation<double>;

}  // namespace eddy
