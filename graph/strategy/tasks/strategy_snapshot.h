// take_snapshot: a BlockGraph and its timeline as a task graph of its own, for code that shows or
// check them.
//
// The times are the timeline's own. Which of two came first where that decides nothing is not kept
// there: `order` is that of a full simulation of the same tasks.
//
// Contract: the timeline is complete, and this graph's; labels only where the graph keeps them.
// Threads: none. Cost: O(tasks log tasks).
#pragma once

#include <vector>

#include "graph/simulate/task_graph.h"
#include "graph/simulate/timeline.h"
#include "graph/strategy/tasks/block_graph.h"
#include "graph/strategy/tasks/block_timeline.h"
#include "graph/strategy/tasks/task_label.h"

namespace eddy {

// Tasks in the order of their ranks, with predecessors.
struct StrategySnapshot {
  TaskGraph<double> graph;
  Timeline<double> timeline;
  std::vector<TaskLabel> labels;  // where they are kept
};

StrategySnapshot take_snapshot(const BlockGraph& blocks, const BlockTimeline& times,
                               bool has_labels);

}  // namespace eddy
