// BlockTimeline: the timeline of a BlockGraph, and the one after its blocks were replaced, from the
// first instant that can be different.
//
// A task that was ready before that instant keeps its times, and so do all that it waits for: no
// new task, and none that waits for one, can be ready earlier. The rest is simulated by Algorithm 1
// (timeline.h), so the times are those of a full simulation, bit for bit, in whatever way the graph
// came about. The new times stand beside the old ones: rollback() forgets them, commit() takes
// them, and notes when each block begins: blocks that begin later have no task to be kept.
//
// The old makespan tells the calendar of event_loop.h where its horizon is. The transfers that wait
// for a task are one entry of it.
//
// Rejection: with a threshold, simulate() ends with kExceeds as soon as the time that a device has
// idled plus all its work is above it, which is the verdict of the complete simulation. Devices
// that wait are looked at when one of them can be late, 256 times at most up to the horizon.
//
// Errors: kOverflow (timeline.h); kCycle does not occur, since ranks of blocks ascend. Contract:
// simulate() is followed by commit(), if it is done, or rollback(). Threads: none. Cost: simulate()
// O(tasks and dependencies); a task before the first instant costs a third of one behind it.
// Memory: 40 bytes a slot, 20 a transfer.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "graph/simulate/event_loop.h"
#include "graph/simulate/timeline.h"
#include "graph/strategy/tasks/block_graph.h"
#include "graph/strategy/tasks/block_tasks.h"

namespace eddy {

class BlockTimeline {
 public:
  // Of all the graph's tasks; forgets what it knew. False: an end does not fit its type.
  bool reset(const BlockGraph& graph);
  SimulationEnd simulate(const BlockGraph& graph,
                         double threshold = std::numeric_limits<double>::max());
  void commit(const BlockGraph& graph);
  void rollback() { is_simulated_ = false; }

  // After simulate(): of the changed graph, where that is done.
  double makespan() const { return current().makespan; }
  double ready(uint32_t slot) const { return current().tasks[slot].ready; }
  double start(uint32_t slot) const { return current().tasks[slot].start; }
  double transfer_start(uint32_t transfer) const { return current().transfer_starts[transfer]; }

 private:
  struct Times {
    std::vector<BlockTasks::Task> tasks;  // by slot
    std::vector<double> transfer_starts;  // ready when the task ends that they wait for
    double makespan = 0;
  };

  const Times& current() const { return is_simulated_ ? new_ : old_; }
  double first_instant(const BlockGraph& graph);
  void prepare(const BlockGraph& graph, double horizon);
  void keep_prefix(const BlockGraph& graph, double instant);
  void find_roots(const BlockGraph& graph);
  template <bool kIsBounded>
  SimulationEnd run(const BlockGraph& graph, double threshold);
  BlockTasks make_tasks(const BlockGraph& graph, double limit);
  void finish();

  Times old_;
  Times new_;
  std::vector<double> first_ready_;  // by block: the earliest of its tasks, of old
  bool is_simulated_ = false;

  // Of one simulation.
  std::vector<BlockTasks::Device> devices_;
  std::vector<BlockTasks::Shard> shards_;
  std::vector<double> earliest_;  // by new slot or shard: when what it waits for ended, of old

  EventLoop loop_;  // keys have a slot, that may be kTransfer + a transfer
  ReadyCalendar::Buckets buckets_{};
};

}  // namespace eddy
