// Timeline<Time>: when each task of a TaskGraph runs, and in what order.
//
// What every simulation here computes, full or delta, is the timeline of FlexFlow's Algorithm 1:
// a task is ready when all its predecessors have ended (0 without any); ready tasks wait in one
// queue ordered by (ready, rank, slot); a task that comes out of it starts at max(ready, end of the
// task that came out before it on its device). That is also what decides for tasks of no length,
// which may release tasks of a smaller rank at the very instant they are taken themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/simulate/task_graph.h"

namespace eddy {

template <TimeValue Time>
struct TaskTimes {
  Time ready;
  Time start;
  Time end;
  uint32_t position;  // in Timeline::order; kNoSlot for a slot without a task
};

template <TimeValue Time>
struct Timeline {
  std::vector<TaskTimes<Time>> tasks;  // by slot
  std::vector<uint32_t> order;         // slots as they left the queue; ascending by ready
  Time makespan = 0;                   // the latest end; 0 without tasks
};

enum class SimulationEnd {
  kDone,
  kExceeds,   // the makespan is above the threshold given; the timeline is not complete
  kCycle,     // tasks wait for each other in a circle
  kOverflow,  // an end does not fit its type
};

// How a simulation ended, and the tasks to blame where it failed.
struct SimulationResult {
  SimulationEnd end = SimulationEnd::kDone;
  // kCycle: the slots on one cycle, each a predecessor of the next, the last of the first.
  // kOverflow: one task whose end does not fit.
  std::vector<uint32_t> culprits;

  bool is_done() const { return end == SimulationEnd::kDone; }
};

}  // namespace eddy
