// DeltaSimulation::simulate(): the old order, replayed and merged with what changed.
#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "graph/simulate/blame.h"
#include "graph/simulate/delta_simulation.h"

namespace eddy {

template <TimeValue Time>
SimulationResult DeltaSimulation<Time>::simulate(const DeltaOptions<Time>& options) {
  EDDY_CHECK(!is_simulated_) << "simulate() twice without commit() or rollback()";
  EDDY_DCHECK(state_.size() == graph_.num_slots() && timeline_.tasks.size() == graph_.num_slots())
      << "the graph was edited past its simulation";
  is_simulated_ = true;
  options_ = options;
  statistics_ = {};
  result_ = {};
  old_makespan_ = timeline_.makespan;
  if (devices_.size() < graph_.num_devices()) devices_.resize(graph_.num_devices());
  queue_.clear();
  num_waiting_ = 0;
  num_leaving_ = 0;
  num_out_of_step_ = 0;
  first_ = next_ = options.mode == DeltaMode::kFull ? 0 : first_position();
  if (expects_much_change() || !sweep()) {
    resimulate();
    return result_;
  }
  if (!result_.is_done()) return result_;
  if (num_waiting_ > 0) {
    result_ = {SimulationEnd::kCycle, find_cycle()};
    return result_;
  }
  timeline_.makespan = new_makespan();
  if (timeline_.makespan > options_.threshold) result_ = {SimulationEnd::kExceeds, {}};
  return result_;
}

// For where most of what follows an edit changes, as in training, where a delay moves everything
// behind it. The old timeline stays as it is, so that rolling back is a swap.
template <TimeValue Time>
void DeltaSimulation<Time>::resimulate() {
  EDDY_DCHECK(first_ <= timeline_.order.size() && !is_swapped_) << "place " << first_;
  for (const SavedTimes& saved : saved_) at(saved.slot) = saved.times;
  saved_.clear();
  if (pause_ == 0) pause_ = 1;
  result_ =
      full_.run(graph_, spare_,
                {.old_or_null = &timeline_, .num_kept = first_, .threshold = options_.threshold});
  statistics_ = {.num_processed = full_.num_taken(), .has_resimulated = true};
  if (!result_.is_done()) return;
  std::swap(timeline_, spare_);
  is_swapped_ = true;
}

// Where repairing did not pay, it is tried again only now and then.
template <TimeValue Time>
bool DeltaSimulation<Time>::expects_much_change() {
  constexpr uint32_t kPause = 64;
  if (options_.mode != DeltaMode::kAuto) return options_.mode != DeltaMode::kRepair;
  if (pause_ == 0) return false;
  pause_ = (pause_ + 1) % kPause;
  return true;
}

// Where the old order first may differ from the new one.
template <TimeValue Time>
uint32_t DeltaSimulation<Time>::first_position() {
  auto first = static_cast<uint32_t>(timeline_.order.size());
  for (const uint32_t slot : seeds_) {
    first = std::min(first, at(slot).position);  // kNoSlot where it is new
    if (graph_.is_live(slot)) first = std::min(first, first_position_of(slot));
  }
  return first;
}

// The first place at which a task named by an edit may now leave the queue. One that follows
// another such task comes after that one's place.
template <TimeValue Time>
uint32_t DeltaSimulation<Time>::first_position_of(uint32_t slot) const {
  Time ready = 0;
  for (const uint32_t from : graph_.predecessors(slot)) {
    if (state_[from] & kSeed) return kNoSlot;
    ready = std::max(ready, timeline_.tasks[from].end);
  }
  const auto is_before = [this](uint32_t other, Time time) {
    return timeline_.tasks[other].ready < time;
  };
  const auto place =
      std::lower_bound(timeline_.order.begin(), timeline_.order.end(), ready, is_before);
  return static_cast<uint32_t>(place - timeline_.order.begin());
}

template <TimeValue Time>
ReadyKey DeltaSimulation<Time>::key(uint32_t slot) const {
  return ready_key(time_key(timeline_.tasks[slot].ready), graph_.task(slot).rank, slot);
}

// The number of the device's tasks that stand before `position` in the old order.
template <TimeValue Time>
uint32_t DeltaSimulation<Time>::device_position(const Device& device, uint32_t position) const {
  const auto is_before = [this](uint32_t slot, uint32_t limit) {
    return timeline_.tasks[slot].position < limit;
  };
  return static_cast<uint32_t>(
      std::lower_bound(device.order.begin(), device.order.end(), position, is_before) -
      device.order.begin());
}

template <TimeValue Time>
void DeltaSimulation<Time>::set_state(uint32_t slot, uint32_t state) {
  if (state_[slot] == 0) touched_slots_.push_back(slot);
  state_[slot] = state;
}

template <TimeValue Time>
bool DeltaSimulation<Time>::is_undone(uint32_t slot) const {
  if (state_[slot] & kChanged) return !(state_[slot] & kDone);
  return timeline_.tasks[slot].position >= next_;
}

// The task waits for all its predecessors that are not done, and its successors for it.
template <TimeValue Time>
void DeltaSimulation<Time>::make_changed(uint32_t slot) {
  TaskTimes<Time>& own = at(slot);
  saved_.push_back({slot, own});
  EDDY_DCHECK((state_[slot] & (kChanged | kRemoved)) == 0) << "slot " << slot << " has changed";
  const bool is_releaser = own.position == kNoSlot || own.ready == own.end;
  own.ready = 0;
  uint32_t state = kChanged | (state_[slot] & kSeed) | (is_releaser ? kReleaser : 0u);
  for (const uint32_t from : graph_.predecessors(slot)) {
    if (!is_undone(from)) {
      own.ready = std::max(own.ready, at(from).end);
      continue;
    }
    state += kCount;
    if (!(state_[from] & kChanged)) set_state(from, state_[from] | kNotify);
  }
  set_state(slot, state);
  ++num_waiting_;
  if (own.position != kNoSlot) {
    ++num_leaving_;
    touch(home_[slot]);
    devices_[home_[slot]].leaving_work += work_[slot];
    devices_[home_[slot]].unchanged_work -= work_[slot];
  }
  const auto& task = graph_.task(slot);
  touch(task.device);
  devices_[task.device].changed_work += static_cast<double>(task.exe_time);
  if (state < kCount) queue_.put(key(slot));
  for (const uint32_t to : graph_.successors(slot)) {
    if (!(state_[to] & kChanged)) set_state(to, state_[to] + kCount);
  }
}

// From here on the device's last end is kept apart. While it is in step, every task before
// this place in its old order ended as before.
template <TimeValue Time>
void DeltaSimulation<Time>::put_out_of_step(uint32_t d) {
  Device& device = devices_[d];
  if (device.is_out_of_step) return;
  EDDY_DCHECK(next_ <= timeline_.order.size()) << "place " << next_ << " is behind the end";
  device.is_out_of_step = true;
  ++num_out_of_step_;
  touch(d);
  const uint32_t index = device_position(device, next_);
  device.end = index == 0 ? 0 : at(device.order[index - 1]).end;
  const bool has_more = index < device.order.size();
  device.unchanged_work =
      (has_more ? device.work - device.work_before[index] : 0) - device.leaving_work;
}

template <TimeValue Time>
void DeltaSimulation<Time>::touch(uint32_t d) {
  if (devices_[d].is_touched) return;
  devices_[d].is_touched = true;
  touched_devices_.push_back(d);
}

// False where so much changes that the old order is of no use.
template <TimeValue Time>
bool DeltaSimulation<Time>::sweep() {
  order_devices();
  for (const uint32_t slot : seeds_) {
    if (graph_.is_live(slot)) continue;
    set_state(slot, state_[slot] | kRemoved);
    if (at(slot).position == kNoSlot) continue;
    ++num_leaving_;
    touch(home_[slot]);
    devices_[home_[slot]].leaving_work += work_[slot];
  }
  for (const uint32_t slot : seeds_) {
    if (graph_.is_live(slot)) make_changed(slot);
  }
  while (step()) {
    if (should_resimulate()) return false;
  }
  return true;
}

// Takes one task of the old order or of the queue, whichever comes first; false at the end.
template <TimeValue Time>
bool DeltaSimulation<Time>::step() {
  if (!result_.is_done()) return false;
  if (next_ == timeline_.order.size()) {
    if (queue_.is_empty()) return false;
    process(slot_of(queue_.take()));
    return true;
  }
  const uint32_t slot = timeline_.order[next_];
  const uint32_t state = state_[slot];
  if (state & (kChanged | kRemoved)) {  // leaves its old place
    put_out_of_step(home_[slot]);
    ++next_;
    EDDY_DCHECK(num_leaving_ > 0) << "slot " << slot << " leaves a place that was not counted";
    --num_leaving_;
    devices_[home_[slot]].leaving_work -= work_[slot];
    return true;
  }
  if (!queue_.is_empty() && queue_.top() < key(slot)) {
    process(slot_of(queue_.take()));
    return !is_at_rest();
  }
  if (state >= kCount) {  // waits for a changed task that comes later than it itself did
    make_changed(slot);
    return true;
  }
  pass(slot);
  return !is_at_rest();
}

// Nothing that follows in the old order can be different.
template <TimeValue Time>
bool DeltaSimulation<Time>::is_at_rest() const {
  return num_waiting_ == 0 && num_leaving_ == 0 && num_out_of_step_ == 0;
}

// An unchanged task leaves the queue as before.
template <TimeValue Time>
void DeltaSimulation<Time>::pass(uint32_t slot) {
  EDDY_DCHECK((state_[slot] & (kChanged | kDone | kRemoved)) == 0 && state_[slot] < kCount)
      << "slot " << slot << " has changed and can't pass";
  ++next_;
  ++statistics_.num_passed;
  new_order_.push_back(slot);
  TaskTimes<Time>& own = at(slot);
  Device& device = devices_[home_[slot]];
  bool has_changed = false;
  if (device.is_out_of_step) {
    const Time start = std::max(own.ready, device.end);
    if (start == own.start) {
      device.is_out_of_step = false;
      EDDY_DCHECK(num_out_of_step_ > 0) << "a device is back in step that never left";
      --num_out_of_step_;
    } else {
      saved_.push_back({slot, own});
      own.start = start;
      const Time end = add_times(start, graph_.task(slot).exe_time);
      has_changed = end != own.end;
      own.end = device.end = end;
      device.unchanged_work -= work_[slot];
      check_end(slot, device);
    }
  }
  if (state_[slot] & kNotify) {
    for (const uint32_t to : graph_.successors(slot)) {
      if (state_[to] & kChanged) arrive(to, own.end);
    }
  }
  if (!has_changed) return;
  for (const uint32_t to : graph_.successors(slot)) {
    if (!(state_[to] & kChanged)) make_changed(to);
  }
}

// A predecessor of a changed task has ended.
template <TimeValue Time>
void DeltaSimulation<Time>::arrive(uint32_t slot, Time time) {
  EDDY_DCHECK((state_[slot] & (kChanged | kDone)) == kChanged && state_[slot] >= kCount)
      << "slot " << slot << " waits for nobody";
  TaskTimes<Time>& own = at(slot);
  own.ready = std::max(own.ready, time);
  state_[slot] -= kCount;
  if (state_[slot] < kCount) queue_.put(key(slot));
}

// A changed task leaves the queue.
template <TimeValue Time>
void DeltaSimulation<Time>::process(uint32_t slot) {
  EDDY_DCHECK((state_[slot] & (kChanged | kDone)) == kChanged && state_[slot] < kCount)
      << "slot " << slot << " is taken, but does not stand in the queue";
  EDDY_DCHECK(num_waiting_ > 0) << "slot " << slot << " was not counted";
  ++statistics_.num_processed;
  new_order_.push_back(slot);
  TaskTimes<Time>& own = at(slot);
  const auto& task = graph_.task(slot);
  put_out_of_step(task.device);
  Device& device = devices_[task.device];
  own.start = std::max(own.ready, device.end);
  const Time old_end = own.end;
  own.end = device.end = add_times(own.start, task.exe_time);
  device.changed_work -= static_cast<double>(task.exe_time);
  check_end(slot, device);
  const uint32_t state = state_[slot];
  state_[slot] |= kDone;
  --num_waiting_;
  // A task that takes no time, now or before, may stand at the same instant as those it releases.
  const bool has_changed = own.end != old_end || own.end == own.ready || (state & kReleaser);
  for (const uint32_t to : graph_.successors(slot)) {
    if (state_[to] & kChanged) {
      arrive(to, own.end);
    } else {
      EDDY_DCHECK(state_[to] >= kCount) << "slot " << to << " did not wait for " << slot;
      state_[to] -= kCount;
    }
  }
  if (!has_changed) return;
  for (const uint32_t to : graph_.successors(slot)) {
    if (!(state_[to] & kChanged)) make_changed(to);
  }
}

// The device's tasks come one after the other, so its work ahead cannot end earlier than this.
template <TimeValue Time>
void DeltaSimulation<Time>::check_end(uint32_t slot, const Device& device) {
  if (may_be_overflow(device.end) && sum_overflows(at(slot).start, graph_.task(slot).exe_time)) {
    result_ = {SimulationEnd::kOverflow, {slot}};
    return;
  }
  if (options_.threshold == std::numeric_limits<Time>::max()) return;
  const double bound =
      static_cast<double>(device.end) + device.unchanged_work + device.changed_work;
  const auto threshold = static_cast<double>(options_.threshold);
  if (device.end > options_.threshold || bound * (1 - kRounding) > threshold) {
    result_ = {SimulationEnd::kExceeds, {}};
  }
}

// A changed task costs a few times what it costs to simulate one anew.
template <TimeValue Time>
bool DeltaSimulation<Time>::should_resimulate() const {
  constexpr uint64_t kPatience = 64;
  if (options_.mode != DeltaMode::kAuto) return false;
  const uint64_t num_changed = statistics_.num_processed + num_waiting_;
  return num_changed > kPatience + statistics_.num_passed;
}

// Ends on one device ascend, so the last one is its latest.
template <TimeValue Time>
Time DeltaSimulation<Time>::new_makespan() const {
  Time makespan = 0;
  for (const Device& device : devices_) {
    makespan = std::max(makespan, device.is_out_of_step ? device.end : device.final_end);
  }
  return makespan;
}

template <TimeValue Time>
std::vector<uint32_t> DeltaSimulation<Time>::find_cycle() const {
  const auto is_waiting = [this](uint32_t slot) {
    return (state_[slot] & (kChanged | kDone)) == kChanged;
  };
  const auto waits_for = [&](uint32_t slot) {
    return *std::ranges::find_if(graph_.predecessors(slot), is_waiting);
  };
  auto start = std::ranges::find_if(seeds_, is_waiting);
  if (start == seeds_.end()) {
    start = std::ranges::find_if(touched_slots_, is_waiting);
    EDDY_CHECK(start != touched_slots_.end()) << "no task waits";
  }
  return find_waiting_cycle(*start, graph_.num_slots(), waits_for);
}

template class DeltaSimulation<int64_t>;
template class DeltaSimulation<double>;

}  // namespace eddy
