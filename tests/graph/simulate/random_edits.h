// Random task graphs and random edits of them, from a seed: what the simulators are compared on.
//
// A Story is data: any of its tasks and edits may be taken away and the rest still means
// something (an edit that names what is not there does nothing), so a failing one can be shrunk.
#pragma once

#include <string>
#include <vector>

#include "graph/base/random.h"
#include "tests/graph/simulate/reference_simulator.h"

namespace eddy {

template <TimeValue Time>
struct Change {
  enum class Op { kSetExe, kSetDevice, kAddDep, kRemoveDep, kAddTask, kRemoveTask } op;
  uint32_t id = 0;
  uint32_t other = 0;  // the dependency's target, or the device
  Time exe_time = 0;
};

template <TimeValue Time>
struct Edit {
  std::vector<Change<Time>> changes;  // one transaction
  Time threshold = 0;                 // tried first
};

template <TimeValue Time>
struct Story {
  ReferenceGraph<Time> graph;
  std::vector<Edit<Time>> edits;
};

template <TimeValue Time>
Story<Time> random_story(uint64_t seed, uint32_t max_tasks, uint32_t num_edits);

// Whether the change means something for this graph; then it is done.
template <TimeValue Time>
bool apply_change(const Change<Time>& change, ReferenceGraph<Time>& graph);

template <TimeValue Time>
std::string to_string(const Story<Time>& story);

}  // namespace eddy
