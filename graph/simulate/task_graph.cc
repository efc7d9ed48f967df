#include "graph/simulate/task_graph.h"

#include "graph/base/check.h"

namespace eddy {

template <TimeValue Time>
void TaskGraph<Time>::assign(std::span<const TaskSpec<Time>> tasks, std::span<const Edge> edges) {
  EDDY_CHECK(tasks.size() < kNoSlot && edges.size() < kNoSlot) << "more than 2^32 - 2 of a kind";
  tasks_.resize(tasks.size());
  num_tasks_ = static_cast<uint32_t>(tasks.size());
  num_edges_ = edges.size();
  num_devices_ = 0;
  free_slots_.clear();
  has_predecessors_ = false;
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks_[i] = {tasks[i].exe_time, tasks[i].device, tasks[i].rank, {}, 0};
    use_device(tasks[i].device);
  }
  for (const Edge& edge : edges) {
    EDDY_DCHECK(edge.from < tasks.size() && edge.to < tasks.size() && edge.from != edge.to)
        << "edge " << edge.from << " -> " << edge.to << " of " << tasks.size() << " tasks";
    ++tasks_[edge.from].successors.capacity;
    ++tasks_[edge.to].num_predecessors;
  }
  uint32_t begin = 0;
  for (Task& task : tasks_) {
    task.successors.begin = begin;
    begin += task.successors.capacity;
  }
  const std::span<uint32_t> pool = successor_lists_.assign(edges.size());
  for (const Edge& edge : edges) {
    ListRef& list = tasks_[edge.from].successors;
    pool[list.begin + list.size++] = edge.to;
  }
}

template <TimeValue Time>
void TaskGraph<Time>::make_predecessors() {
  if (has_predecessors_) return;
  predecessors_.assign(tasks_.size(), {});
  uint32_t begin = 0;
  for (uint32_t slot = 0; slot < num_slots(); ++slot) {
    const uint32_t count = tasks_[slot].num_predecessors;
    predecessors_[slot] = {.begin = begin, .size = 0, .capacity = count};
    begin += count;
  }
  EDDY_CHECK(begin == num_edges_) << begin << " ends of " << num_edges_ << " edges";
  const std::span<uint32_t> pool = predecessor_lists_.assign(begin);
  for (uint32_t slot = 0; slot < num_slots(); ++slot) {
    for (const uint32_t to : successors(slot)) {
      ListRef& list = predecessors_[to];
      pool[list.begin + list.size++] = slot;
    }
  }
  has_predecessors_ = true;
}

template <TimeValue Time>
bool TaskGraph<Time>::has_dep(uint32_t from, uint32_t to) const {
  EDDY_DCHECK(is_live(from) && is_live(to)) << "edge " << from << " -> " << to;
  const std::span<const uint32_t> forward = successors(from);
  if (has_predecessors_) {
    const std::span<const uint32_t> backward = predecessors(to);
    if (backward.size() < forward.size()) {
      return std::find(backward.begin(), backward.end(), from) != backward.end();
    }
  }
  return std::find(forward.begin(), forward.end(), to) != forward.end();
}

template <TimeValue Time>
void TaskGraph<Time>::set_device(uint32_t slot, uint32_t device) {
  EDDY_DCHECK(device != kNoSlot);
  use_device(device);
  tasks_[slot].device = device;
}

template <TimeValue Time>
void TaskGraph<Time>::add_dep(uint32_t from, uint32_t to) {
  EDDY_DCHECK(is_live(from) && is_live(to) && from != to) << "edge " << from << " -> " << to;
  successor_lists_.append(tasks_[from].successors, to);
  ++tasks_[to].num_predecessors;
  ++num_edges_;
  if (has_predecessors_) predecessor_lists_.append(predecessors_[to], from);
}

template <TimeValue Time>
bool TaskGraph<Time>::remove_dep(uint32_t from, uint32_t to) {
  if (has_predecessors_) {
    if (!predecessor_lists_.erase(predecessors_[to], from)) return false;
    const bool is_erased = successor_lists_.erase(tasks_[from].successors, to);
    EDDY_DCHECK(is_erased) << "edge " << from << " -> " << to << " stands in one list only";
  } else if (!successor_lists_.erase(tasks_[from].successors, to)) {
    return false;
  }
  --tasks_[to].num_predecessors;
  --num_edges_;
  return true;
}

template <TimeValue Time>
uint32_t TaskGraph<Time>::add_task(const TaskSpec<Time>& spec) {
  EDDY_DCHECK(is_valid_time(spec.exe_time) && spec.device != kNoSlot);
  use_device(spec.device);
  ++num_tasks_;
  const Task task{spec.exe_time, spec.device, spec.rank, {}, 0};
  if (!free_slots_.empty()) {
    const uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    EDDY_DCHECK(!is_live(slot) && tasks_[slot].successors.size == 0)
        << "slot " << slot << " is free and in use";
    const ListRef successors = tasks_[slot].successors;  // its block stays with the slot
    tasks_[slot] = task;
    tasks_[slot].successors = successors;
    return slot;
  }
  EDDY_CHECK(tasks_.size() < kNoSlot - 1) << "more than 2^32 - 2 tasks";
  tasks_.push_back(task);
  if (has_predecessors_) predecessors_.push_back({});
  return num_slots() - 1;
}

template <TimeValue Time>
void TaskGraph<Time>::remove_task(uint32_t slot) {
  EDDY_DCHECK(is_live(slot) && tasks_[slot].successors.size == 0 &&
              tasks_[slot].num_predecessors == 0)
      << "task in slot " << slot << " still has dependencies";
  tasks_[slot].device = kNoSlot;
  --num_tasks_;
}

template <TimeValue Time>
void TaskGraph<Time>::revive_task(uint32_t slot, const TaskSpec<Time>& spec) {
  EDDY_DCHECK(slot < num_slots() && !is_live(slot)) << "slot " << slot << " is in use";
  tasks_[slot].exe_time = spec.exe_time;
  tasks_[slot].device = spec.device;
  tasks_[slot].rank = spec.rank;
  ++num_tasks_;
}

template class TaskGraph<int64_t>;
template class TaskGraph<double>;

}  // namespace eddy
