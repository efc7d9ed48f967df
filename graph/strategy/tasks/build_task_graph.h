// build_task_graph: the task graph of an operator graph under a strategy.
//
//   TaskGraphBuilder builder(graph, topology);
//   TaskGraph<double> tasks;
//   EDDY_RETURN_IF_ERROR(builder.build(strategy, tasks));
//
// One normal task for each part (and its backward twin in training), one communication task for
// each link that a transfer crosses, rings for gradients: task_emitter.h defines which and why, and
// task_label.h how they are called. Tasks that share a device but not a transfer depend on each
// other directly. Devices of the task graph are the simulated devices of the topology.
//
// Contract: every configuration passed check_config(). A builder keeps its memory from one build
// to the next; its labels speak of the last one.
// Errors: those of task_emitter.h. Cost: O(tasks + dependencies), some tens of nanoseconds a task.
#pragma once

#include <vector>

#include "graph/base/status.h"
#include "graph/simulate/task_graph.h"
#include "graph/strategy/tasks/task_emitter.h"

namespace eddy {

class TaskGraphBuilder {
 public:
  // Borrows both.
  TaskGraphBuilder(const OperatorGraph& graph, const Topology& topology)
      : graph_(graph), emitter_(graph, topology) {}

  Status build(const Strategy& strategy, TaskGraph<double>& tasks);
  // The same, and what each slot stands for.
  Status build(const Strategy& strategy, TaskGraph<double>& tasks, std::vector<TaskLabel>& labels);

  const PartCost& costs() const { return emitter_.costs(); }

 private:
  template <typename Sink>
  Status emit_all(const Strategy& strategy, Sink& sink);

  const OperatorGraph& graph_;
  TaskEmitter emitter_;
  std::vector<TaskSpec<double>> specs_;
  std::vector<Edge> edges_;
};

}  // namespace eddy
