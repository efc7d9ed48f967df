// TaskGraph<Time>: what the simulator simulates: tasks, each on one device for one time, and
// dependencies between them (FlexFlow, Jia et al. 2018, section 5: normal and communication tasks
// look alike here). Time is int64_t (exact) or double.
//
// A task is known by its slot, a dense number that stays valid until the task is removed and its
// slot recycled. Among equal ready times `rank` decides the order: the smaller goes first, and
// equal ranks by slot. Ranks are the caller's: unique ones make the timeline
// independent of slots. A device is a dense number too; using one creates it. Names, ids of files
// and what a task stands for live with the caller, in arrays indexed by slot.
//
// Two ways to make one: assign() takes everything at once and lays it out tight (fast; reuses the
// memory of the graph before), and the edits below change it one by one at O(degree) each. Both
// may be mixed. Nothing here looks for cycles: the simulations do, and name them.
//
// Contract: times are valid (is_valid_time) and normalized, slots live, no self edge. A dependency
// given twice counts twice towards readiness and so means the same as once; remove_dep removes
// one. Use has_dep() where that is not known. Violations are programmer errors (CHECK in debug
// builds).
// Limits: 2^32 - 2 tasks, devices and edges. Memory: 32 bytes a task and 4 an edge; predecessor
// lists (another 12 and 4) are made when first used, which only delta simulation does.
// Threads: as std::vector.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/analysis/dag.h"
#include "graph/base/check.h"
#include "graph/simulate/slot_lists.h"
#include "graph/simulate/time_value.h"

namespace eddy {

inline constexpr uint32_t kNoSlot = UINT32_MAX;

template <TimeValue Time>
struct TaskSpec {
  Time exe_time = 0;
  uint32_t device = 0;
  uint32_t rank = 0;  // among equal ready times the smaller goes first
};

template <TimeValue Time>
class TaskGraph {
 public:
  // 32 bytes: one task's own line while it is simulated.
  struct Task {
    Time exe_time;
    uint32_t device;  // kNoSlot: no task lives in this slot
    uint32_t rank;
    ListRef successors;
    uint32_t num_predecessors;

    bool is_live() const { return device != kNoSlot; }
  };
  static_assert(sizeof(Task) == 32);

  // Replaces everything: tasks get slots 0 .. n-1 in the order given. O(tasks + edges).
  void assign(std::span<const TaskSpec<Time>> tasks, std::span<const Edge> edges);

  // Slots in use or free for use: loops go over 0 .. num_slots()-1 and skip those not live.
  uint32_t num_slots() const { return static_cast<uint32_t>(tasks_.size()); }
  uint32_t num_tasks() const { return num_tasks_; }
  uint32_t num_devices() const { return num_devices_; }
  uint64_t num_edges() const { return num_edges_; }
  const Task& task(uint32_t slot) const {
    EDDY_DCHECK(slot < tasks_.size()) << "slot " << slot << " of " << tasks_.size();
    return tasks_[slot];
  }
  const Task* tasks() const { return tasks_.data(); }
  bool is_live(uint32_t slot) const { return slot < tasks_.size() && tasks_[slot].is_live(); }

  // In no particular order.
  std::span<const uint32_t> successors(uint32_t slot) const {
    EDDY_DCHECK(slot < tasks_.size()) << "slot " << slot << " of " << tasks_.size();
    return successor_lists_.items(tasks_[slot].successors);
  }
  // make_predecessors() came first.
  std::span<const uint32_t> predecessors(uint32_t slot) const {
    EDDY_DCHECK(has_predecessors_) << "make_predecessors() was not called";
    return predecessor_lists_.items(predecessors_[slot]);
  }
  bool has_dep(uint32_t from, uint32_t to) const;

  void set_exe_time(uint32_t slot, Time exe_time) {
    EDDY_DCHECK(is_live(slot) && is_valid_time(exe_time)) << "time " << exe_time << " of " << slot;
    tasks_[slot].exe_time = exe_time;
  }
  void set_device(uint32_t slot, uint32_t device);
  // Changes the order among equal ready times: a timeline made before stays right only where the
  // relative order of all ranks stays.
  void set_rank(uint32_t slot, uint32_t rank) {
    EDDY_DCHECK(is_live(slot)) << "slot " << slot << " holds no task";
    tasks_[slot].rank = rank;
  }
  void add_dep(uint32_t from, uint32_t to);
  // False where there is none.
  bool remove_dep(uint32_t from, uint32_t to);

  // The slot: a recycled one if there is any.
  uint32_t add_task(const TaskSpec<Time>& spec);
  // The task has no dependencies any more. Its slot is free only after recycle(); until then
  // revive() brings the task back.
  void remove_task(uint32_t slot);
  void revive_task(uint32_t slot, const TaskSpec<Time>& spec);
  void recycle(uint32_t slot) {
    EDDY_DCHECK(slot < num_slots() && !is_live(slot)) << "slot " << slot << " is in use";
    free_slots_.push_back(slot);
  }

  // Predecessor lists, kept up to date by every edit from then on. O(tasks + edges) once.
  void make_predecessors();

 private:
  void use_device(uint32_t device) {
    if (device >= num_devices_) num_devices_ = device + 1;
  }

  std::vector<Task> tasks_;
  SlotLists successor_lists_;
  std::vector<ListRef> predecessors_;
  SlotLists predecessor_lists_;
  std::vector<uint32_t> free_slots_;
  uint32_t num_tasks_ = 0;
  uint32_t num_devices_ = 0;
  uint64_t num_edges_ = 0;
  bool has_predecessors_ = false;
};

extern template class TaskGraph<int64_t>;
extern template class TaskGraph<double>;

}  // namespace eddy
