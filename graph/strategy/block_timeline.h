// BlockTimeline: the timeline of a BlockGraph, and the one after its blocks were replaced, from
// the first instant that can be different.
//
// A task that was ready before that instant keeps its times, and so do all that it waits for: no
// new task, and none that waits for one, can be ready earlier. The rest is simulated by Algorithm 1
// (timeline.h), so the times are those of a full simulation, bit for bit, in whatever way the
// graph came about. The new times stand beside the old ones: rollback() forgets them, commit()
// takes them.
//
// The queue of ready tasks is a calendar (Brown 1988): buckets of equal width over the time up to
// a horizon, each a list that is sorted when its time has come, and that becomes a heap should
// more come into it while it is emptied. The old makespan tells where the horizon is, and so how
// wide a bucket must be to hold about a task: this is what makes it cheaper than a heap. What is
// ready behind the horizon waits in a heap. Tasks that wait for one task alone, as transfers do,
// are ready together: they are one entry, known by the task they wait for. With 40 % (convolutional
// networks) to 80 % of the tasks (recurrent ones) that halves the entries.
//
// Most tasks behind the first instant move, and not together: along a device the shift changes
// after every 3 to 20 of them (networks of tests/bench), too often to move them by segments. Nor
// is the old order worth replaying: 1 to 3 % of them leave it in convolutional networks, 20 to
// 40 % in recurrent ones, each with all that follows it.
// A step of the search replaces 7 to 15 % of the tasks of convolutional networks, 12 to 35 % of
// recurrent ones and up to half of AlexNet's; 80 to 90 % are ready behind the first instant. Tasks
// laid out by time, puts without branches and other widths of buckets gain nothing.
//
// Rejection: with a threshold, simulate() ends with kExceeds as soon as a device's end plus the
// work it still has is above it, which is the verdict of the complete simulation. Devices that
// wait are looked at kLooks times on the way to the horizon.
// Longest paths would add nothing: on the networks of tests/bench they are 6 to 62 % of the
// makespan, and reject little that work does not.
//
// Errors: kOverflow (timeline.h); kCycle does not occur, since ranks of blocks ascend. Contract:
// simulate() is followed by commit(), if it is done, or rollback(). Threads: none.
// Cost: simulate() O(tasks) with a constant of some 3 nanoseconds, + O(tasks and dependencies after
// the first instant), 10 to 20 nanoseconds a task. Memory: 80 to 100 bytes a slot.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "graph/simulate/ready_queue.h"
#include "graph/simulate/timeline.h"
#include "graph/strategy/block_graph.h"

namespace eddy {

class BlockTimeline {
 public:
  // Of all the graph's tasks; forgets what it knew. False: an end does not fit its type.
  bool reset(const BlockGraph& graph);
  SimulationEnd simulate(const BlockGraph& graph,
                         double threshold = std::numeric_limits<double>::max());
  void commit();
  void rollback() { is_simulated_ = false; }

  // After simulate(): of the changed graph, where that is done.
  double makespan() const { return current().makespan; }
  double ready(uint32_t slot) const { return current().tasks[slot].ready; }
  double start(uint32_t slot) const { return current().tasks[slot].start; }
  const std::vector<uint32_t>& order() const { return current().order; }

  // Of the last simulate(): tasks that were taken from the queue.
  uint32_t num_simulated() const { return num_done_ - num_kept_; }

 private:
  // 16 bytes: what a task is until it is taken, and when it runs afterwards.
  struct Task {
    double ready;
    union {
      uint32_t num_predecessors;  // not yet taken
      double start;
    };
  };
  static_assert(sizeof(Task) == 16);
  struct Times {
    std::vector<Task> tasks;      // by slot
    std::vector<uint32_t> order;  // ascending by (ready, rank)
    double makespan = 0;
  };

  struct Loop;

  const Times& current() const { return is_simulated_ ? new_ : old_; }
  double first_instant(const BlockGraph& graph);
  void prepare(const BlockGraph& graph, double horizon);
  void keep_prefix(const BlockGraph& graph, double instant);
  void find_roots(const BlockGraph& graph);
  bool exceeds_from_here(double instant, double limit) const;
  template <bool kIsBounded>
  SimulationEnd run(const BlockGraph& graph, double threshold);
  Loop make_loop(const BlockGraph& graph, double limit);
  template <bool kIsBounded>
  bool take_all(Loop& loop);
  template <bool kIsBounded>
  bool take_bucket(Loop& loop, uint32_t bucket);
  template <bool kIsBounded>
  bool take_followers(Loop& loop, uint32_t bucket, uint32_t slot);
  size_t sort_bucket(const Loop& loop, uint32_t first);
  template <bool kIsBounded>
  bool take_by_queue(Loop& loop, uint32_t bucket);
  void finish();

  Times old_;
  Times new_;
  bool is_simulated_ = false;

  // Of one simulation.
  std::vector<double> device_end_;  // by device
  std::vector<double> work_left_;
  std::vector<double> earliest_;  // by new slot: when the tasks of old it waits for end
  uint32_t num_kept_ = 0;
  uint32_t num_done_ = 0;

  // The calendar: lists of entries by bucket. The last one has no end. An entry is a slot, or
  // kFollowers + a slot: those that wait for it alone.
  std::vector<uint32_t> heads_;
  std::vector<uint32_t> next_;     // by slot
  std::vector<uint64_t> is_used_;  // bits, by bucket
  double buckets_per_time_ = 0;
  uint32_t num_buckets_ = 0;
  std::vector<uint32_t> entries_;  // of a bucket with several
  std::vector<ReadyKey> open_;     // their tasks, in order
  ReadyQueue queue_;
};

}  // namespace eddy
