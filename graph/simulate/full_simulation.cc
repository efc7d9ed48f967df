#include "graph/simulate/full_simulation.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/simulate/blame.h"

namespace eddy {

// An entry is a slot. While a task waits, `position` counts the predecessors it waits for.
template <TimeValue Time>
struct FullSimulation<Time>::Tasks {
  const TaskGraph<Time>* graph;
  const typename TaskGraph<Time>::Task* tasks;
  TaskTimes<Time>* times;
  uint32_t* order;
  std::span<Device> devices;
  double limit;
  uint32_t num_done;
  uint32_t rejected = kNoSlot;
  ReadyQueue* queue;  // what is ready stands there while it is little, then here:
  ReadyCalendar::Buckets buckets{};

  static constexpr bool is_group(uint32_t) { return false; }
  uint32_t next_of(uint32_t slot) const { return buckets.next[slot]; }
  ReadyKey entry_key(uint32_t slot) const {
    return ready_key(time_key(times[slot].ready), tasks[slot].rank, slot);
  }
  template <typename Visit>
  void for_each_key(uint32_t slot, const Visit& visit) const {
    visit(entry_key(slot));
  }
  void look_ahead(uint32_t slot) const {
    __builtin_prefetch(graph->successors(slot).data());
    __builtin_prefetch(times + slot);
  }
  void look(uint32_t slot) const {
    for (const uint32_t successor : graph->successors(slot)) __builtin_prefetch(times + successor);
  }
  double next_verdict(double instant) const {
    return eddy::next_verdict<Device>(devices, instant, limit);
  }

  bool is_taken(uint32_t slot) const {
    const uint32_t position = times[slot].position;
    return position < num_done && order[position] == slot;
  }
  template <bool kIsLittle>
  [[gnu::always_inline]] void put(uint32_t slot) const {
    if constexpr (kIsLittle) return queue->put(entry_key(slot));
    buckets.put(slot, slot, static_cast<double>(times[slot].ready));
    __builtin_prefetch(tasks + slot);
  }
  template <bool kIsLittle>
  [[gnu::always_inline]] void release(uint32_t slot, Time end) const {
    TaskTimes<Time>& task = times[slot];
    EDDY_DCHECK(task.position > 0 && task.position != kNoSlot)
        << "slot " << slot << " is released more often than it waits";
    task.ready = std::max(task.ready, end);
    if (--task.position == 0) put<kIsLittle>(slot);
  }

  template <bool kIsBounded, bool kIsLittle = false>
  [[gnu::always_inline]] bool take(uint32_t slot) {
    EDDY_DCHECK(tasks[slot].is_live() && times[slot].position == 0)
        << "slot " << slot << " waits for " << times[slot].position << " tasks";
    EDDY_DCHECK(num_done < graph->num_tasks()) << "slot " << slot << " is taken twice";
    const auto& task = tasks[slot];
    TaskTimes<Time>& own = times[slot];
    Device& device = devices[task.device];
    const Time start = own.start = std::max(own.ready, device.end);
    if constexpr (kIsBounded) device.bound += static_cast<double>(start - device.end);
    const Time end = own.end = device.end = add_times(start, task.exe_time);
    own.position = num_done;
    order[num_done++] = slot;
    if constexpr (kIsBounded) {
      if (device.bound > limit) {
        rejected = slot;
        return false;
      }
    }
    for (const uint32_t successor : graph->successors(slot)) release<kIsLittle>(successor, end);
    return true;
  }
  template <bool kIsBounded>
  [[gnu::always_inline]] bool take_entry(uint32_t slot, ReadyQueue&) {
    return take<kIsBounded>(slot);
  }
  template <bool kIsBounded>
  [[gnu::always_inline]] bool take_of_little(ReadyKey key) {
    return take<kIsBounded, true>(slot_of(key));
  }
  template <bool kIsBounded>
  [[gnu::always_inline]] bool take_key(ReadyKey key) {
    return take<kIsBounded>(slot_of(key));
  }
};

template <TimeValue Time>
void FullSimulation<Time>::prepare(const Tasks& tasks, const FullOptions<Time>& options) {
  for (uint32_t slot = 0; slot < tasks.graph->num_slots(); ++slot) {
    const auto& task = tasks.tasks[slot];
    tasks.times[slot] = {0, 0, 0, task.is_live() ? task.num_predecessors : kNoSlot};
    if (tasks.times[slot].position != 0) continue;
    if (!options.is_kept(slot)) tasks.template put<true>(slot);
  }
  // What is kept releases what follows it.
  for (uint32_t i = 0; i < options.num_kept; ++i) {
    const uint32_t slot = tasks.order[i] = options.old_or_null->order[i];
    tasks.times[slot] = options.old_or_null->tasks[slot];
    const Time end = devices_[tasks.tasks[slot].device].end = tasks.times[slot].end;
    for (const uint32_t to : tasks.graph->successors(slot)) {
      if (!options.is_kept(to)) tasks.template release<true>(to, end);
    }
  }
}

// What each device has done and still has to do; the most of it.
template <TimeValue Time>
double FullSimulation<Time>::sum_work(const Tasks& tasks) {
  for (Device& device : devices_) device.bound = static_cast<double>(device.end);
  for (uint32_t slot = 0; slot < tasks.graph->num_slots(); ++slot) {
    const auto& task = tasks.tasks[slot];
    if (!task.is_live() || tasks.is_taken(slot)) continue;
    devices_[task.device].bound += static_cast<double>(task.exe_time);
  }
  double most = 0;
  for (const Device& device : devices_) most = std::max(most, device.bound);
  return most;
}

// Little that is ready is cheaper in a heap.
template <TimeValue Time>
template <bool kIsBounded>
bool FullSimulation<Time>::take_all(Tasks& tasks, const FullOptions<Time>& options) {
  if (kIsBounded) sum_work(tasks);
  if (!loop_.run_little<kIsBounded>(tasks, options.num_little)) return false;
  if (tasks.queue->is_empty()) return true;
  double horizon = 2 * sum_work(tasks);
  if (options.old_or_null != nullptr) {
    horizon = 1.25 * std::max(horizon / 2, static_cast<double>(options.old_or_null->makespan));
  }
  if (kIsBounded) horizon = static_cast<double>(options.threshold);
  tasks.buckets = loop_.open(tasks.graph->num_tasks(), tasks.graph->num_slots(), horizon);
  tasks.queue->take_all([&](ReadyKey key) { tasks.template put<false>(slot_of(key)); });
  return loop_.run<kIsBounded>(tasks);
}

template <TimeValue Time>
SimulationResult FullSimulation<Time>::run(const TaskGraph<Time>& graph, Timeline<Time>& timeline,
                                           const FullOptions<Time>& options) {
  constexpr double kRounding = 1e-9;  // sums of work may be wrong by as much
  EDDY_CHECK(options.num_kept == 0 || options.old_or_null != nullptr) << "no times to keep";
  EDDY_CHECK(options.num_kept <= graph.num_tasks() &&
             (options.num_kept == 0 || options.num_kept <= options.old_or_null->order.size()))
      << options.num_kept << " tasks are kept of " << graph.num_tasks();
  EDDY_CHECK(options.old_or_null != &timeline) << "a timeline is read while it is written";
  timeline.tasks.resize(graph.num_slots());
  timeline.order.resize(graph.num_tasks());
  devices_.assign(graph.num_devices(), {});
  Tasks tasks{.graph = &graph,
              .tasks = graph.tasks(),
              .times = timeline.tasks.data(),
              .order = timeline.order.data(),
              .devices = devices_,
              .limit = static_cast<double>(options.threshold) / (1 - kRounding),
              .num_done = options.num_kept,
              .queue = &loop_.clear_queue()};
  prepare(tasks, options);
  const bool is_bounded = options.threshold != std::numeric_limits<Time>::max();
  const bool is_within =
      is_bounded ? take_all<true>(tasks, options) : take_all<false>(tasks, options);
  num_taken_ = tasks.num_done - options.num_kept;
  if (!is_within) {
    const uint32_t slot = tasks.rejected;
    const bool is_overflow =
        slot != kNoSlot && sum_overflows(tasks.times[slot].start, graph.task(slot).exe_time);
    return is_overflow ? SimulationResult{SimulationEnd::kOverflow, {slot}}
                       : SimulationResult{SimulationEnd::kExceeds, {}};
  }
  timeline.makespan = 0;
  for (const Device& device : devices_) timeline.makespan = std::max(timeline.makespan, device.end);
  if (tasks.num_done < graph.num_tasks()) return blame_cycle(graph, timeline, tasks.num_done);
  if (may_be_overflow(timeline.makespan)) {
    const SimulationResult result = blame_overflow(graph, timeline);
    if (!result.is_done()) return result;
  }
  // What is kept was not looked at on the way.
  return {timeline.makespan > options.threshold ? SimulationEnd::kExceeds : SimulationEnd::kDone,
          {}};
}

template class FullSimulation<int64_t>;
template class FullSimulation<double>;

}  // namespace eddy
