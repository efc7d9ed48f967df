// DeltaSimulation<Time>: a task graph with its timeline, and edits that bring both forward
// together, at the cost of what changes (FlexFlow's Algorithm 2, made exact; README.md has how).
//
//   DeltaSimulation<double> delta;
//   delta.reset(std::move(graph));                 // full simulation
//   delta.set_exe_time(slot, 2.5);                 // any number of edits,
//   const SimulationResult r = delta.simulate();   // then the new timeline,
//   if (r.is_done() && is_better(delta.makespan())) delta.commit(); else delta.rollback();
//
// A transaction is the edits, one simulate(), and commit() or rollback(). After simulate() the
// new times are in place: times() and makespan() are those of the edited graph. rollback() restores
// graph, slots and times exactly; commit() keeps them. A failed or rejected simulate() can only
// be rolled back. Times are those of a full simulation, bit for bit, on integers and doubles.
//
// With a threshold, simulate() ends with kExceeds as soon as a lower bound of the makespan is above
// it; the verdict is that of the complete simulation. A cycle is found only where the simulation
// comes to its end.
//
// Errors: kCycle, kOverflow (timeline.h). Programmer errors: edits between simulate() and
// commit() or rollback(); those of TaskGraph.
// Threads: none. Cost: simulate() and commit() O(what follows the first changed instant) with a
// small constant for tasks that stay, or else that of a full simulation whose first tasks need no
// queue; rollback() O(what changed). Memory: some 120 bytes a task.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "graph/base/check.h"
#include "graph/simulate/full_simulation.h"
#include "graph/simulate/ready_queue.h"
#include "graph/simulate/task_graph.h"
#include "graph/simulate/timeline.h"

namespace eddy {

enum class DeltaMode {
  kAuto,
  kRepair,      // never simulates the rest anew
  kResimulate,  // simulates anew from the first instant touched
  kFull,        // simulates all anew: what the others are compared with
};

template <TimeValue Time>
struct DeltaOptions {
  // simulate() ends with kExceeds when the makespan is above.
  Time threshold = std::numeric_limits<Time>::max();
  DeltaMode mode = DeltaMode::kAuto;
};

// What the last simulate() did.
struct DeltaStatistics {
  uint64_t num_passed = 0;     // tasks left as they were by a look
  uint64_t num_processed = 0;  // tasks taken from a queue
  bool has_resimulated = false;
};

template <TimeValue Time>
class DeltaSimulation {
 public:
  // Replaces graph and timeline; on failure there is neither.
  SimulationResult reset(TaskGraph<Time> graph);

  const TaskGraph<Time>& graph() const { return graph_; }
  const TaskTimes<Time>& times(uint32_t slot) const {
    EDDY_DCHECK(slot < timeline_.tasks.size()) << "slot " << slot << " has no times";
    return timeline_.tasks[slot];
  }
  Time makespan() const { return timeline_.makespan; }
  // The timeline of the last commit() (or reset): order and positions lag behind times within a
  // transaction.
  const Timeline<Time>& timeline() const { return timeline_; }
  const DeltaStatistics& statistics() const { return statistics_; }

  // Edits, as in TaskGraph. A slot removed is free again only after commit().
  void set_exe_time(uint32_t slot, Time exe_time);
  void set_device(uint32_t slot, uint32_t device);
  void add_dep(uint32_t from, uint32_t to);
  bool remove_dep(uint32_t from, uint32_t to);
  uint32_t add_task(const TaskSpec<Time>& spec);
  void remove_task(uint32_t slot);  // and its dependencies, both ways
  // Changes no times where the order of all ranks stays, and is not undone by rollback().
  void set_rank(uint32_t slot, uint32_t rank) { graph_.set_rank(slot, rank); }

  SimulationResult simulate(const DeltaOptions<Time>& options = {});
  void commit();
  void rollback();

 private:
  // What a task is while an edit is repaired: 0, and it leaves the queue as it did before; or
  // these bits, with the number of predecessors it waits for in the bits above.
  enum : uint32_t {
    kChanged = 1,    // goes through the queue; waits for all predecessors not yet done
    kDone = 2,       // has gone through it
    kRemoved = 4,    // no task any more
    kNotify = 8,     // unchanged, but a changed successor waits for it
    kReleaser = 16,  // new, or took no time before: its successors change whatever its end
    kSeed = 32,      // named by an edit
    kCount = 64,     // one predecessor; those of an unchanged task are changed and not done
  };
  // Sums of work may be wrong by as much.
  static constexpr double kRounding = 1e-9;
  // A device is in step while its last end is what it was at this place of the old order.
  struct Device {
    std::vector<uint32_t> order;      // its tasks as of the last commit
    std::vector<double> work_before;  // by place in `order`: the work of all tasks before it
    double work = 0;                  // of all of them
    Time final_end = 0;               // of the last of them

    // The members below belong to one simulation.
    Time end = 0;               // only where out of step
    double unchanged_work = 0;  // likewise; of unchanged tasks not yet passed
    double changed_work = 0;    // of changed tasks that run here, not yet done
    double leaving_work = 0;    // of changed or removed tasks whose old place is not yet reached
    bool is_out_of_step = false;
    bool is_touched = false;  // has any of these
  };
  struct Undo {
    enum class Kind { kExeTime, kDevice, kAddDep, kRemoveDep, kAddTask, kRemoveTask } kind;
    uint32_t slot = 0;
    uint32_t other = 0;  // the dependency's target
    TaskSpec<Time> spec{};
  };
  struct SavedTimes {
    uint32_t slot;
    TaskTimes<Time> times;
  };

  TaskTimes<Time>& at(uint32_t slot) { return timeline_.tasks[slot]; }
  ReadyKey key(uint32_t slot) const;
  uint32_t device_position(const Device& device, uint32_t position) const;

  void seed(uint32_t slot);
  void set_state(uint32_t slot, uint32_t state);
  uint32_t first_position();
  uint32_t first_position_of(uint32_t slot) const;
  bool is_undone(uint32_t slot) const;
  void make_changed(uint32_t slot);
  void touch(uint32_t device);
  void put_out_of_step(uint32_t device);
  void arrive(uint32_t slot, Time time);
  bool expects_much_change();
  bool sweep();
  bool step();
  void pass(uint32_t slot);
  void process(uint32_t slot);
  void check_end(uint32_t slot, const Device& device);
  bool should_resimulate() const;
  void resimulate();
  void order_devices();
  bool is_at_rest() const;
  Time new_makespan() const;
  std::vector<uint32_t> find_cycle() const;
  void sum_work(Device& device);
  void commit_devices();
  void commit_order();
  void undo(const Undo& undo);
  void clear_transaction();

  TaskGraph<Time> graph_;
  Timeline<Time> timeline_;
  std::vector<Device> devices_;
  std::vector<uint32_t> home_;   // by slot: the device in whose order it stands
  std::vector<double> work_;     // by slot: its time as of the last commit
  std::vector<uint32_t> state_;  // by slot; 0 outside simulate()

  // One transaction.
  std::vector<Undo> undo_;
  std::vector<uint32_t> seeds_;
  std::vector<uint32_t> added_;
  std::vector<uint32_t> removed_;
  bool is_simulated_ = false;
  bool is_swapped_ = false;  // timeline_ is the new one, spare_ the old one

  FullSimulation<Time> full_;
  Timeline<Time> spare_;
  bool has_stale_devices_ = false;  // order and work are not those of timeline_
  uint32_t pause_ = 0;              // > 0: repairing did not pay

  // One simulate().
  DeltaOptions<Time> options_;
  DeltaStatistics statistics_;
  SimulationResult result_;
  ReadyQueue queue_;
  std::vector<uint32_t> touched_slots_;  // state is not 0
  std::vector<uint32_t> touched_devices_;
  std::vector<uint32_t> new_order_;  // replaces order[first_ .. next_)
  std::vector<SavedTimes> saved_;
  Time old_makespan_ = 0;
  uint32_t first_ = 0;
  uint32_t next_ = 0;             // the old order before it has been passed
  uint64_t num_waiting_ = 0;      // changed and not done
  uint64_t num_leaving_ = 0;      // changed or removed, old place not yet reached
  uint32_t num_out_of_step_ = 0;  // devices
};

extern template class DeltaSimulation<int64_t>;
extern template class DeltaSimulation<double>;

}  // namespace eddy
