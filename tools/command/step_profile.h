// StepProfile: what each step of runs costs in its place in a plan, and how loops and branches
// decided: an observer of a session.
//
// Times are those of the time-stamp counter around each step; looking costs time itself, of which
// the part that lies between the two looks is taken off (the caller measures it on steps of
// independently known time). What a run spends between its steps is not seen here.
//
//   StepProfile profile;
//   options.observer_or_null = &profile; ...
//   profile.begin(graph.num_nodes());  // before each run
//   call.run();
//   profile.work(graph, looking)  // of each node, per execution
//
// Threads: one run at a time; its strands may be on several threads. Cost: some 20 ns a step.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "graph/compile/node_work.h"
#include "runtime/execute/step_observer.h"

namespace eddy {

// Nanoseconds that observing adds to what is seen of a step.
struct LookingCosts {
  double exec_ns = 0;
  double control_ns = 0;
};

class StepProfile : public StepObserver {
 public:
  // Forgets what was seen. Costs and decisions are then those of one run.
  void begin(size_t num_nodes);

  Status before(RunState& state, const Step& step) override;
  void after(RunState& state, const Step& step, int32_t decision) override;

  // Seen in the run; their sum is the run's as far as it consists of steps.
  uint64_t total_ticks() const;
  uint64_t num_steps(bool is_exec) const;
  uint64_t executions(NodeId node) const { return cells_[node.index()][0].count; }  // of exec nodes

  // Per execution, in nanoseconds; the nodes that did not run cost nothing.
  NodeWork work(const Graph& graph, const LookingCosts& looking) const;
  // By node: the trips of a loop or the branches of a case-of, in turn.
  const std::vector<std::vector<int64_t>>& decisions() const { return decisions_; }

 private:
  static constexpr size_t kNumKinds = static_cast<size_t>(StepKind::kFinishBranch) + 1;
  struct Cell {
    uint64_t ticks = 0;
    uint64_t count = 0;
  };
  double mean_ns(NodeId node, StepKind kind, double looking_ns) const;

  std::vector<std::array<Cell, kNumKinds>> cells_;
  std::vector<std::vector<int64_t>> decisions_;
  std::vector<int64_t> trips_;     // of the loop's execution in progress
  std::vector<uint64_t> started_;  // by node: its steps follow each other
};

// How long a tick of the time-stamp counter takes. Measured once, in some 10 ms.
double tick_ns();

}  // namespace eddy
