// The transaction: edits, and what commit() and rollback() do. The simulation itself is in
// delta_sweep.cc.
#include "graph/simulate/delta_simulation.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"

namespace eddy {

template <TimeValue Time>
SimulationResult DeltaSimulation<Time>::reset(TaskGraph<Time> graph) {
  graph_ = std::move(graph);
  clear_transaction();
  const SimulationResult result = full_.run(graph_, timeline_);
  if (!result.is_done()) {
    graph_ = {};
    timeline_ = {};
  }
  graph_.make_predecessors();
  state_.assign(graph_.num_slots(), 0);
  home_.resize(graph_.num_slots());
  work_.resize(graph_.num_slots());
  for (uint32_t slot = 0; slot < graph_.num_slots(); ++slot) {
    home_[slot] = graph_.task(slot).device;
    work_[slot] = static_cast<double>(graph_.task(slot).exe_time);
  }
  has_stale_devices_ = true;
  pause_ = 0;
  return result;
}

// The facts of the devices that a repair needs; resimulate() does without.
template <TimeValue Time>
void DeltaSimulation<Time>::order_devices() {
  if (!has_stale_devices_) return;
  has_stale_devices_ = false;
  devices_.assign(graph_.num_devices(), {});
  for (const uint32_t slot : timeline_.order) devices_[home_[slot]].order.push_back(slot);
  for (Device& device : devices_) {
    if (!device.order.empty()) device.final_end = at(device.order.back()).end;
    sum_work(device);
  }
}

// Continues the device's sums of work from where they end.
template <TimeValue Time>
void DeltaSimulation<Time>::sum_work(Device& device) {
  size_t i = device.work_before.size();
  EDDY_DCHECK(i <= device.order.size()) << i << " sums for " << device.order.size() << " tasks";
  device.work = i == 0 ? 0 : device.work_before[i - 1] + work_[device.order[i - 1]];
  for (; i < device.order.size(); ++i) {
    device.work_before.push_back(device.work);
    device.work += work_[device.order[i]];
  }
}

template <TimeValue Time>
void DeltaSimulation<Time>::seed(uint32_t slot) {
  EDDY_DCHECK(!is_simulated_) << "an edit between simulate() and commit() or rollback()";
  if (state_[slot] & kSeed) return;
  state_[slot] |= kSeed;
  seeds_.push_back(slot);
}

template <TimeValue Time>
void DeltaSimulation<Time>::set_exe_time(uint32_t slot, Time exe_time) {
  EDDY_DCHECK(graph_.is_live(slot) && is_valid_time(exe_time));
  undo_.push_back({.kind = Undo::Kind::kExeTime,
                   .slot = slot,
                   .spec = {.exe_time = graph_.task(slot).exe_time}});
  graph_.set_exe_time(slot, exe_time);
  seed(slot);
}

template <TimeValue Time>
void DeltaSimulation<Time>::set_device(uint32_t slot, uint32_t device) {
  EDDY_DCHECK(graph_.is_live(slot));
  undo_.push_back(
      {.kind = Undo::Kind::kDevice, .slot = slot, .spec = {.device = graph_.task(slot).device}});
  graph_.set_device(slot, device);
  seed(slot);
}

template <TimeValue Time>
void DeltaSimulation<Time>::add_dep(uint32_t from, uint32_t to) {
  undo_.push_back({.kind = Undo::Kind::kAddDep, .slot = from, .other = to});
  graph_.add_dep(from, to);
  seed(to);
}

template <TimeValue Time>
bool DeltaSimulation<Time>::remove_dep(uint32_t from, uint32_t to) {
  if (!graph_.remove_dep(from, to)) return false;
  undo_.push_back({.kind = Undo::Kind::kRemoveDep, .slot = from, .other = to});
  seed(to);
  return true;
}

template <TimeValue Time>
uint32_t DeltaSimulation<Time>::add_task(const TaskSpec<Time>& spec) {
  const uint32_t slot = graph_.add_task(spec);
  if (slot >= state_.size()) {
    state_.push_back(0);
    EDDY_DCHECK(slot == home_.size() && slot == work_.size() && slot == timeline_.tasks.size())
        << "slot " << slot << " is not the next one";
    home_.push_back(spec.device);
    work_.push_back(0);
    timeline_.tasks.push_back({});
  }
  home_[slot] = spec.device;
  timeline_.tasks[slot] = {0, 0, 0, kNoSlot};
  undo_.push_back({.kind = Undo::Kind::kAddTask, .slot = slot});
  added_.push_back(slot);
  seed(slot);
  return slot;
}

template <TimeValue Time>
void DeltaSimulation<Time>::remove_task(uint32_t slot) {
  EDDY_DCHECK(graph_.is_live(slot)) << "slot " << slot << " holds no task";
  while (!graph_.successors(slot).empty()) remove_dep(slot, graph_.successors(slot).back());
  while (!graph_.predecessors(slot).empty()) remove_dep(graph_.predecessors(slot).back(), slot);
  const auto& task = graph_.task(slot);
  undo_.push_back({.kind = Undo::Kind::kRemoveTask,
                   .slot = slot,
                   .spec = {task.exe_time, task.device, task.rank}});
  graph_.remove_task(slot);
  removed_.push_back(slot);
  seed(slot);
}

template <TimeValue Time>
void DeltaSimulation<Time>::commit() {
  EDDY_CHECK(is_simulated_ && result_.is_done()) << "commit() follows a simulate() that is done";
  for (const uint32_t slot : seeds_) {
    if (!graph_.is_live(slot)) continue;
    home_[slot] = graph_.task(slot).device;
    work_[slot] = static_cast<double>(graph_.task(slot).exe_time);
  }
  if (is_swapped_) {
    has_stale_devices_ = true;
  } else {
    commit_devices();
    commit_order();
  }
  for (const uint32_t slot : removed_) {
    at(slot).position = kNoSlot;
    graph_.recycle(slot);
  }
  clear_transaction();
}

// Within the replaced range each touched device gets its tasks in their new order; what stands
// before and behind stays. Positions are still the old ones here.
template <TimeValue Time>
void DeltaSimulation<Time>::commit_devices() {
  std::vector<std::vector<uint32_t>> tails;
  for (const uint32_t d : touched_devices_) {
    Device& device = devices_[d];
    tails.emplace_back(device.order.begin() + device_position(device, next_), device.order.end());
    device.order.resize(device_position(device, first_));
    device.work_before.resize(device.order.size());
    if (device.is_out_of_step) device.final_end = device.end;
  }
  for (const uint32_t slot : new_order_) {
    Device& device = devices_[home_[slot]];
    if (device.is_touched) device.order.push_back(slot);
  }
  for (size_t i = 0; i < tails.size(); ++i) {
    std::vector<uint32_t>& order = devices_[touched_devices_[i]].order;
    order.insert(order.end(), tails[i].begin(), tails[i].end());
    sum_work(devices_[touched_devices_[i]]);
  }
}

template <TimeValue Time>
void DeltaSimulation<Time>::commit_order() {
  std::vector<uint32_t>& order = timeline_.order;
  EDDY_CHECK(first_ <= next_ && next_ <= order.size())
      << "places " << first_ << " to " << next_ << " of " << order.size() << " are replaced";
  const size_t replaced = next_ - first_;
  const bool is_shifted = replaced != new_order_.size();
  if (new_order_.size() > replaced) {
    order.insert(order.begin() + next_, new_order_.size() - replaced, 0);
  } else {
    order.erase(order.begin() + static_cast<ptrdiff_t>(first_ + new_order_.size()),
                order.begin() + next_);
  }
  std::copy(new_order_.begin(), new_order_.end(), order.begin() + first_);
  EDDY_DCHECK(order.size() == graph_.num_tasks())
      << order.size() << " tasks in order of " << graph_.num_tasks();
  const size_t end = is_shifted ? order.size() : next_;
  for (size_t i = first_; i < end; ++i) at(order[i]).position = static_cast<uint32_t>(i);
}

template <TimeValue Time>
void DeltaSimulation<Time>::rollback() {
  if (is_swapped_) {
    std::swap(timeline_, spare_);
  } else {
    for (const SavedTimes& saved : saved_) at(saved.slot) = saved.times;
    if (is_simulated_) timeline_.makespan = old_makespan_;
  }
  for (size_t i = undo_.size(); i-- > 0;) undo(undo_[i]);
  for (const uint32_t slot : added_) graph_.recycle(slot);
  clear_transaction();
}

template <TimeValue Time>
void DeltaSimulation<Time>::undo(const Undo& undo) {
  switch (undo.kind) {
    case Undo::Kind::kExeTime:
      return graph_.set_exe_time(undo.slot, undo.spec.exe_time);
    case Undo::Kind::kDevice:
      return graph_.set_device(undo.slot, undo.spec.device);
    case Undo::Kind::kAddDep:
      graph_.remove_dep(undo.slot, undo.other);
      return;
    case Undo::Kind::kRemoveDep:
      return graph_.add_dep(undo.slot, undo.other);
    case Undo::Kind::kAddTask:
      at(undo.slot).position = kNoSlot;
      return graph_.remove_task(undo.slot);
    case Undo::Kind::kRemoveTask:
      return graph_.revive_task(undo.slot, undo.spec);
  }
}

template <TimeValue Time>
void DeltaSimulation<Time>::clear_transaction() {
  for (const uint32_t slot : seeds_) state_[slot] = 0;
  for (const uint32_t slot : touched_slots_) state_[slot] = 0;
  for (const uint32_t d : touched_devices_) {
    Device& device = devices_[d];
    device.is_out_of_step = device.is_touched = false;
    device.unchanged_work = device.changed_work = device.leaving_work = 0;
  }
  undo_.clear();
  seeds_.clear();
  added_.clear();
  removed_.clear();
  touched_slots_.clear();
  touched_devices_.clear();
  new_order_.clear();
  saved_.clear();
  is_simulated_ = false;
  is_swapped_ = false;
}

template class DeltaSimulation<int64_t>;
template class DeltaSimulation<double>;

}  // namespace eddy
