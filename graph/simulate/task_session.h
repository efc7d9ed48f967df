// TaskSession<Time>: a task file being simulated: its first timeline, and one more after each of
// its edits.
//
// Ids become slots and ranks here. An edit is done as a whole or not at all: a batch is validated
// at its end, so its parts may name tasks that a later part adds, pass through cycles, and hold
// times that a later part corrects. Setting a dependency that is there already changes nothing.
//
// An undo takes back the last edit that still stands, however many there were: ids, times, devices
// and dependencies are what they were before it, and so is the timeline. It is not an edit itself.
//
// The mode is how edits are simulated: by delta, or all tasks anew each time.
//
// Errors (invalid argument, naming task and edit): an id twice, one that does not exist, a
// dependency of a task on itself, one that is to be removed and is not there, a time that is
// negative or not finite, a cycle with the tasks on it, an end that does not fit its type, a time
// that no double holds beside fractions, an undo where no edit stands. After an error the session
// is of no further use. Cost: of an edit O(log tasks) for each id, then that of the simulation.
// Memory: what takes an edit back, 32 bytes a change.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/simulate/delta_simulation.h"
#include "graph/simulate/open_deps.h"
#include "graph/simulate/task_file.h"

namespace eddy {

template <TimeValue Time>
class TaskSession {
 public:
  explicit TaskSession(DeltaMode mode = DeltaMode::kAuto) : mode_(mode) {}

  // Simulates the file's tasks; its edits are left to apply().
  Status start(const TaskFile& file);
  // `where`: "edit 3", for messages.
  Status apply(const TaskFile::Batch& batch, const std::string& where);

  const DeltaSimulation<Time>& simulation() const { return simulation_; }
  // Ascending by id.
  const std::map<int64_t, uint32_t>& slots() const { return slots_; }

 private:
  // One change that takes another one back.
  struct Reverse {
    FileEdit::Op op;
    uint32_t device = 0;
    int64_t id = 0;
    int64_t to = 0;
    Time time{};
  };

  Result<Time> time_of(const FileTask& task);
  Result<uint32_t> slot_of(int64_t id) const;
  Status apply_change(const FileEdit& edit);
  Status apply_undo();
  void apply_reverse(const Reverse& change);
  void insert_task(int64_t id, Time time, uint32_t device);
  void connect(uint32_t from, uint32_t to);
  Status add_task(const FileTask& task);
  void remove_task(uint32_t slot);
  Status add_dep(int64_t from, int64_t to);
  Status remove_dep(int64_t from, int64_t to);
  void close_deps(int64_t id);
  Status check_open_ends() const;
  uint32_t rank_for(int64_t id);
  void spread_ranks();
  Status describe(const SimulationResult& result) const;
  std::string name_cycle(const std::vector<uint32_t>& slots) const;

  DeltaMode mode_;
  DeltaSimulation<Time> simulation_;
  std::map<int64_t, uint32_t> slots_;
  std::vector<int64_t> ids_;                   // by slot
  bool has_wide_ids_ = false;                  // some id does not fit 32 bits, so ranks are not ids
  std::vector<std::vector<Reverse>> history_;  // by edit that stands

  // The state of the batch at hand.
  std::vector<Reverse> reverses_;  // the last change first to be taken back
  OpenDeps open_deps_;
  std::map<int64_t, std::string> open_times_;  // invalid, unless set again; what to say
};

extern template class TaskSession<int64_t>;
extern template class TaskSession<double>;

}  // namespace eddy
