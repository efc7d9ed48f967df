// LoadMeter: how long each device and link is busy under a strategy, kept up to date while
// operators change; the largest is a lower bound of the makespan that needs no simulation.
//
// A search asks it first: most changes that do not pay put so much work on some device or link
// that the bound alone is above the threshold, and nothing has to be edited or simulated. The
// bound is lowered by a millionth, more than rounding can add up to, so that it never rejects what
// a complete simulation accepts.
//
// Errors: a change that cannot be emitted (task_emitter.h) has the bound 0: the simulation says
// what is wrong. Threads: none. Cost: try_change() O(tasks of the blocks that change), without any
// memory for them.
#pragma once

#include <vector>

#include "graph/simulate/strategy.h"
#include "graph/simulate/task_emitter.h"

namespace eddy {

class LoadMeter {
 public:
  // Borrows both.
  LoadMeter(const OperatorGraph& graph, const Topology& topology);

  void reset(const Strategy& strategy);
  // The bound after these operators got this configuration. keep() makes it so.
  double try_change(const std::vector<uint32_t>& ops, const OperatorConfig& config);
  void keep();

 private:
  struct Sink;
  void add_blocks(double sign);

  const OperatorGraph& graph_;
  TaskEmitter emitter_;
  Strategy strategy_;  // as of the last reset() or keep(); within try_change() the changed one
  std::vector<std::vector<uint32_t>> readers_;  // operators that read this one, each once
  std::vector<double> load_;                    // by simulated device
  std::vector<double> tried_;
  uint32_t num_kept_ = 0;  // since the loads were last added up anew

  std::vector<uint32_t> ops_;
  OperatorConfig config_;
  std::vector<uint32_t> touched_;  // operators whose inputs change
  std::vector<uint32_t> groups_;
};

}  // namespace eddy
